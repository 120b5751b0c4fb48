package mcp

import (
	"errors"
	"strconv"
)

// ID is the id of a JSON-RPC request, or a progress token: a string or an
// integer. It keeps which of the two it is: 1 and "1" differ. Ids compare with
// ==. The zero ID is no id.
type ID struct {
	text string
	form idForm
}

type idForm uint8

const (
	idNone idForm = iota
	idString
	idInteger
	idOther // what no id may be: a fraction, a boolean, an object
)

// StringID makes a string id.
func StringID(s string) ID { return ID{s, idString} }

// IntID makes an integer id.
func IntID(n int64) ID { return ID{strconv.FormatInt(n, 10), idInteger} }

// IsZero reports whether there is no id: absent or null.
func (id ID) IsZero() bool { return id.form == idNone }

// IsString reports whether the id is a string.
func (id ID) IsString() bool { return id.form == idString }

// Valid reports whether the id is a string or an integer.
func (id ID) Valid() bool { return id.form == idString || id.form == idInteger }

// String is the text of the id, without quotes; of something that no id may
// be, its JSON. It is cut at [MaxText] bytes.
func (id ID) String() string { return id.text }

// Append appends the id as JSON; no id gives null.
func (id ID) Append(dst []byte) []byte {
	switch id.form {
	case idNone:
		return append(dst, "null"...)
	case idString:
		return appendQuoted(dst, id.text)
	}
	return append(dst, id.text...)
}

// MarshalJSON gives the JSON of Append.
func (id ID) MarshalJSON() ([]byte, error) {
	if id.form == idOther {
		return nil, errors.New("mcp: an id is a string or an integer")
	}
	return id.Append(nil), nil
}

// UnmarshalJSON accepts a string, an integer or null.
func (id *ID) UnmarshalJSON(b []byte) error {
	v := parseID(trim(b))
	if v.form == idOther {
		return errors.New("mcp: an id is a string or an integer")
	}
	*id = v
	return nil
}

// parseID reads the id in a valid JSON value.
func parseID(v []byte) ID {
	switch {
	case len(v) == 0 || isNull(v):
		return ID{}
	case isString(v):
		return ID{unquote(v, MaxText), idString}
	case isInteger(v) && len(v) <= MaxText:
		return ID{string(v), idInteger}
	}
	return ID{string(v[:min(len(v), MaxText)]), idOther}
}
