package history

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestRefRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Ref{
			Role:    Role(rapid.IntRange(0, len(rolePrefix)-1).Draw(t, "role")),
			Call:    rapid.Uint64Range(1, 1<<40-1).Draw(t, "call"),
			Attempt: rapid.Uint32Range(1, 1<<16-1).Draw(t, "attempt"),
		}
		n := NewNonce()
		for what, read := range map[string]func() (Ref, Claim){
			"id":    func() (Ref, Claim) { return n.ReadID(n.ID(r)) },
			"token": func() (Ref, Claim) { return n.ReadToken(n.Token(r)) },
			"trace": func() (Ref, Claim) { return n.ReadTrace(n.Traceparent(r)) },
		} {
			if got, claim := read(); got != r || claim != Ours {
				t.Fatalf("read %s of %v = %v, %v; want it back, as ours", what, r, got, claim)
			}
		}
		if got, claim := n.ReadMarker(n.Marker(r)); got != r.Whole() || claim != Ours {
			t.Fatalf("read marker of %v = %v, %v", r, got, claim)
		}
		other := NewNonce()
		if _, claim := other.ReadID(n.ID(r)); claim != Foreign {
			t.Fatalf("another run's id reads as %v, want foreign", claim)
		}
		if _, claim := other.ReadTrace(n.Traceparent(r)); claim != NotOurs {
			t.Fatalf("another run's trace reads as %v, want not ours", claim)
		}
		if got, err := ParseRef(r.String()); got != r || err != nil {
			t.Fatalf("ParseRef(%q) = %v, %v", r, got, err)
		}
	})
}

func TestIdentitiesDiffer(t *testing.T) {
	n, r := NewNonce(), Ref{Call: 7, Attempt: 1}
	if n.ID(r) == n.Token(r) {
		t.Error("the progress token equals the id")
	}
	for _, s := range []string{"7", "", "mf-", n.Token(r), n.Marker(r), n.ID(r) + "x"} {
		if _, claim := n.ReadID(s); claim != NotOurs {
			t.Errorf("ReadID(%q) claims %v, want not ours", s, claim)
		}
	}
}

func TestFileRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl.zst")
	w, err := Create(path, NewClock())
	if err != nil {
		t.Fatal(err)
	}
	want := []Record{
		{Run: &Run{Schema: Schema, ID: "x", Nonce: NewNonce(), Started: time.Unix(1, 0).UTC()}},
		{Start: &Start{Ref: Ref{Call: 1, Attempt: 1}, Planned: &Planned{Style: Fin, Moment: "sent"}}},
		{Evidence: &Evidence{Source: 1, Kind: Work, Ref: Ref{Call: 1, Attempt: 1}, By: "id", Units: 1, Text: "a\x1b[31m\u2028b"}},
	}
	for _, r := range want {
		w.Append(r)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	// A copy of the file as a kill -9 would leave it is readable so far.
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(t.TempDir(), "half.zst")
	if err := os.WriteFile(half, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	if got, cut := readAll(t, half); len(got) != 3 || !cut {
		t.Errorf("a flushed, unclosed history gives %d records, cut short %v; want 3, true", len(got), cut)
	}
	if err := w.Close("calls"); err != nil {
		t.Fatal(err)
	}
	got, cut := readAll(t, path)
	if cut {
		t.Error("a closed history reads as cut short")
	}
	last := got[len(got)-1]
	if last.Close == nil || last.Close.Records != 4 {
		t.Errorf("last record %+v, want a close of 4 records", last)
	}
	for i := range want {
		got[i].T = 0
	}
	if d := cmp.Diff(want, got[:3]); d != "" {
		t.Errorf("records (-want +got):\n%s", d)
	}
}

func TestTornTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl.zst")
	w, err := Create(path, NewClock())
	if err != nil {
		t.Fatal(err)
	}
	w.Append(Record{Run: &Run{Schema: Schema}})
	for range 1000 {
		w.Append(Record{Stage: &Stage{Name: "load"}})
	}
	w.Flush()
	w.Append(Record{Stage: &Stage{Name: "tail"}})
	if err := w.Close("calls"); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	torn := filepath.Join(t.TempDir(), "torn.zst")
	for cut := 1; cut < 30; cut++ {
		if err := os.WriteFile(torn, raw[:len(raw)-cut], 0o644); err != nil {
			t.Fatal(err)
		}
		got, _ := readAll(t, torn)
		if len(got) < 1001 {
			t.Fatalf("with the last %d bytes gone %d records are left, want at least the 1001 flushed before", cut, len(got))
		}
	}
}

func TestNotAHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("hello\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Next(); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("Next on a text file: %v, want an error that names it", err)
	}
}

func readAll(t *testing.T, path string) ([]Record, bool) {
	t.Helper()
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out []Record
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out, r.CutShort()
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, rec)
	}
}
