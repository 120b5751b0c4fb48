package witness

import (
	"strings"

	"github.com/mcpflood/mcpflood/history"
)

// What attributes evidence, as Evidence.By has it.
const (
	byID     = "id"
	byTrace  = "trace"
	byMarker = "marker"
)

// around is what may stand around an identity when a pattern takes too much:
// JSON quotes, escaped ones, brackets, punctuation. No identity of ours begins
// or ends with any of it.
const around = " \t\"'\\`,;:()[]{}<>"

// identities are the texts of one record that may name an attempt.
type identities struct{ id, trace, marker string }

// attribution is what they name.
type attribution struct {
	ref     history.Ref
	by      string // empty: nothing of ours
	foreign bool   // an attempt of another run
}

// attribute reads the identities in the order id, trace, marker: the first of
// this run wins, then any of another run.
func attribute(n history.Nonce, t identities) attribution {
	var foreign bool
	for _, c := range [...]struct {
		by, text string
		read     func(string) (history.Ref, history.Claim)
	}{
		{byID, t.id, n.ReadID}, {byTrace, t.trace, n.ReadTrace}, {byMarker, t.marker, n.ReadMarker},
	} {
		if c.text == "" {
			continue
		}
		ref, claim := c.read(strings.Trim(c.text, around))
		if claim == history.Ours {
			return attribution{ref: ref, by: c.by}
		}
		foreign = foreign || claim == history.Foreign
	}
	return attribution{foreign: foreign}
}
