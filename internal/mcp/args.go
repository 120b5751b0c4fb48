package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	// maxTypes bounds the names in one type keyword.
	maxTypes = 16
	// maxSchemas bounds the schemas that are read for one argument.
	maxSchemas = 64
	// maxShown bounds how many names or values an error lists.
	maxShown = 8
)

// TypedArgs makes the arguments of a call from texts, typed by the tool's
// inputSchema: "3" is a number for an integer and a text for a string. Arrays
// and objects are given as JSON. Where the schema says nothing of an argument,
// and still allows it, JSON stays what it is and anything else is a text. All
// faults are reported at once, sorted by argument; each names the argument,
// what is wanted, and what to write.
func (t Tool) TypedArgs(kv map[string]string) (json.RawMessage, error) {
	if !json.Valid(t.InputSchema) {
		return nil, errors.New("the tool's inputSchema is not JSON")
	}
	props, _ := member(t.InputSchema, "properties")
	dst := []byte{'{'}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(kv)) {
		schema, ok := member(props, name)
		if !ok {
			schema, ok = t.additional()
		}
		if !ok {
			errs = append(errs, t.unknownArg(name, props))
			continue
		}
		v, err := typed(kv[name], alternatives(schema, t.InputSchema))
		if err != nil {
			errs = append(errs, fmt.Errorf("argument %q: %w", name, err))
			continue
		}
		dst = append(appendMember(dst, name), v...)
	}
	errs = append(errs, t.missing(kv, props)...)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return append(dst, '}'), nil
}

// missing lists required arguments that are not given.
func (t Tool) missing(kv map[string]string, props []byte) (errs []error) {
	required, _ := member(t.InputSchema, "required")
	for e := elements(required); e.next() && len(errs) < maxShown; {
		name := unquote(e.val, MaxText)
		if _, ok := kv[name]; ok || !isString(e.val) {
			continue
		}
		schema, _ := member(props, name)
		want := describe(alternatives(schema, t.InputSchema))
		errs = append(errs, fmt.Errorf("argument %q is required: give %s=VALUE, %s", name, name, want))
	}
	return errs
}

// additional is the schema of arguments that properties does not name; ok is
// false where they are not allowed. A schema that lists properties and does not
// mention others allows them by the letter, but a name that is not listed is
// then far more likely a slip.
func (t Tool) additional() (schema json.RawMessage, ok bool) {
	v, given := member(t.InputSchema, "additionalProperties")
	if given {
		return v, string(v) != "false"
	}
	if _, ok := member(t.InputSchema, "patternProperties"); ok {
		return nil, true
	}
	_, listed := member(t.InputSchema, "properties")
	return nil, !listed
}

func (t Tool) unknownArg(name string, props []byte) error {
	var names []string
	for m := members(props); m.next(); {
		names = append(names, string(m.key))
	}
	if len(names) == 0 {
		return fmt.Errorf("argument %q: tool %q takes none", name, t.Name)
	}
	if near := nearest(name, names); near != "" {
		return fmt.Errorf("argument %q: tool %q has none of that name, did you mean %q?", name, t.Name, near)
	}
	slices.Sort(names)
	return fmt.Errorf("argument %q: tool %q has none of that name, only %s", name, t.Name, listOf(names))
}

func listOf(names []string) string {
	if len(names) > maxShown {
		return strings.Join(names[:maxShown], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

// nearest is the candidate with the fewest edits from name, if they are few
// and leave something of it.
func nearest(name string, candidates []string) string {
	best, found := min(max(2, len(name)/3)+1, len(name)), ""
	for _, c := range candidates {
		if len(c) > 2*len(name)+maxShown {
			continue
		}
		if d := edits(strings.ToLower(name), strings.ToLower(c)); d < best {
			best, found = d, c
		}
	}
	return found
}

// edits is the Levenshtein distance in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// alternative is one form an argument may have: a type, or one of some values.
type alternative struct {
	kind string            // a JSON Schema type; empty: any
	enum []json.RawMessage // if not nil, one of these
}

// alternatives reads what a schema allows, as far as type, enum, const, anyOf,
// oneOf, allOf and references inside the same schema (root) say. Nothing is
// fetched.
func alternatives(schema, root []byte) []alternative {
	r := schemaReader{root: root, left: maxSchemas}
	r.read(schema)
	return r.found
}

type schemaReader struct {
	root  []byte
	left  int      // schemas that may still be read
	refs  []string // references followed so far: they can go in circles
	found []alternative
}

func (r *schemaReader) read(schema []byte) {
	if r.left--; r.left < 0 {
		return
	}
	var kinds []string
	var enum []json.RawMessage
	for m := members(schema); m.next(); {
		switch string(m.key) {
		case "type":
			kinds = typeNames(m.val)
		case "enum":
			for e := elements(m.val); e.next(); {
				enum = append(enum, e.val)
			}
		case "const":
			enum = []json.RawMessage{m.val}
		case "anyOf", "oneOf", "allOf":
			for e := elements(m.val); e.next() && r.left > 0; {
				r.read(e.val)
			}
		case "$ref":
			if ref := unquote(m.val, MaxText); !slices.Contains(r.refs, ref) {
				r.refs = append(r.refs, ref)
				r.read(local(r.root, ref))
			}
		}
	}
	if enum != nil {
		r.found = append(r.found, alternative{enum: enum})
		return
	}
	for _, k := range kinds {
		r.found = append(r.found, alternative{kind: k})
	}
}

// local finds what a reference of the form #/$defs/NAME means.
func local(root []byte, ref string) []byte {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	for name := range strings.SplitSeq(path, "/") {
		name = strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
		if root, ok = member(root, name); !ok {
			return nil
		}
	}
	return root
}

// kindOrder is how types are tried: the most special first, since any text is
// a string.
var kindOrder = []string{"integer", "number", "boolean", "null", "array", "object", "string"}

// typed makes the JSON of a text.
func typed(text string, alts []alternative) (json.RawMessage, error) {
	if len(alts) == 0 {
		return anyValue(text), nil
	}
	for _, a := range alts {
		for _, v := range a.enum {
			if isString(v) && unquote(v, len(v)) == text || string(v) == text {
				return v, nil
			}
		}
	}
	for _, kind := range kindOrder {
		for _, a := range alts {
			if a.enum == nil && a.kind == kind {
				if v, ok := ofKind(text, kind); ok {
					return v, nil
				}
			}
		}
	}
	return nil, fmt.Errorf("%.80q does not fit, %s", text, describe(alts))
}

// anyValue keeps JSON as it is and takes anything else as a text.
func anyValue(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(strings.TrimSpace(text))
	}
	return appendQuoted(nil, text)
}

// ofKind makes the JSON of a text as one type of JSON Schema.
func ofKind(text, kind string) (json.RawMessage, bool) {
	if kind == "string" {
		return appendQuoted(nil, text), true
	}
	v := json.RawMessage(strings.TrimSpace(text))
	if !json.Valid(v) {
		return nil, false
	}
	switch kind {
	case "integer":
		return v, isInteger(v)
	case "number":
		return v, isNumber(v)
	case "boolean":
		return v, v[0] == 't' || v[0] == 'f'
	case "null":
		return v, isNull(v)
	case "array":
		return v, v[0] == '['
	case "object":
		return v, isObject(v)
	}
	return nil, false
}

// examples are what an error shows for a type.
var examples = map[string]string{
	"integer": "an integer like 3",
	"number":  "a number like 1.5",
	"boolean": "true or false",
	"null":    "null",
	"array":   `an array as JSON like ["a","b"]`,
	"object":  `an object as JSON like {"a":1}`,
	"string":  "a text",
}

// describe says what is wanted.
func describe(alts []alternative) string {
	var wants []string
	add := func(s string) {
		if s != "" && !slices.Contains(wants, s) {
			wants = append(wants, s)
		}
	}
	for _, a := range alts {
		if a.enum == nil {
			add(examples[a.kind])
			continue
		}
		var values []string
		for _, v := range a.enum {
			if s := string(v[:min(len(v), 80)]); isString(v) {
				values = append(values, unquote(v, 80))
			} else {
				values = append(values, s)
			}
		}
		add("one of " + listOf(values))
	}
	if len(wants) == 0 {
		return "want any value"
	}
	return "want " + strings.Join(wants, ", or ")
}
