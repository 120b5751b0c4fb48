package history

import (
	"fmt"
	"strconv"
	"strings"
)

// Role says why a call was made.
type Role uint8

// The roles. Load calls are the run itself and the only ones in its counts;
// clean calls run before the load and closing calls after it, both uncut.
const (
	Load Role = iota
	Clean
	Closing
	Probe // discovery, lists, the canary
)

// rolePrefix is how a role looks in front of a call number, in a Ref's text
// and in the ids on the wire.
var rolePrefix = [...]string{"", "k", "z", "p"}

// Ref names one attempt of one call of a run. Attempt counts from 1; 0 stands
// for the call as a whole.
type Ref struct {
	Role    Role
	Call    uint64
	Attempt uint32
}

// IsZero reports whether r names nothing.
func (r Ref) IsZero() bool { return r == Ref{} }

// Whole returns the Ref of r's call as a whole.
func (r Ref) Whole() Ref { r.Attempt = 0; return r }

// Next returns the Ref of the attempt after r.
func (r Ref) Next() Ref { r.Attempt++; return r }

// Compare orders by role, then call, then attempt.
func (r Ref) Compare(o Ref) int {
	switch {
	case r.Role != o.Role:
		return int(r.Role) - int(o.Role)
	case r.Call != o.Call:
		if r.Call < o.Call {
			return -1
		}
		return 1
	default:
		return int(int64(r.Attempt) - int64(o.Attempt))
	}
}

// String gives "17/2" for the second attempt of load call 17, "k1/1" for a
// clean call, "z1/1" for a closing one, "17" for a call as a whole.
func (r Ref) String() string {
	if r.IsZero() {
		return ""
	}
	s := rolePrefix[r.Role] + strconv.FormatUint(r.Call, 10)
	if r.Attempt != 0 {
		s += "/" + strconv.FormatUint(uint64(r.Attempt), 10)
	}
	return s
}

// ParseRef reads the text of String.
func ParseRef(s string) (Ref, error) {
	bad := func() (Ref, error) { return Ref{}, fmt.Errorf("bad attempt reference %q: want CALL/ATTEMPT", s) }
	var r Ref
	rest := s
	for role := Clean; int(role) < len(rolePrefix); role++ {
		if after, ok := strings.CutPrefix(rest, rolePrefix[role]); ok {
			r.Role, rest = role, after
			break
		}
	}
	call, attempt, has := strings.Cut(rest, "/")
	n, err := strconv.ParseUint(call, 10, 64)
	if err != nil || n == 0 {
		return bad()
	}
	r.Call = n
	if has {
		a, err := strconv.ParseUint(attempt, 10, 32)
		if err != nil || a == 0 {
			return bad()
		}
		r.Attempt = uint32(a)
	}
	return r, nil
}

// MarshalText gives the text of String.
func (r Ref) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText accepts the text of String, and the empty text for the zero Ref.
func (r *Ref) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*r = Ref{}
		return nil
	}
	v, err := ParseRef(string(b))
	*r = v
	return err
}
