package stream

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write the traces of testdata anew: read the diff")

// TestTraces plays every script of testdata and compares the whole trace. A
// file holds blocks: a line "== name", the script, a line "----", the trace.
func TestTraces(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("testdata: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { traceFile(t, file) })
	}
}

func traceFile(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lead, blocks, _ := strings.Cut("\n"+string(text), "\n== ")
	var out strings.Builder
	out.WriteString(strings.TrimPrefix(lead+"\n", "\n"))
	for block := range strings.SplitSeq(blocks, "\n== ") {
		name, rest, _ := strings.Cut(block, "\n")
		script, want, _ := strings.Cut(rest, "----\n")
		macros := strings.NewReplacer(
			"PROGRESS", `data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"{token}",`,
			"RESULT", `{"jsonrpc":"2.0","id":"{id}","result":{"resultType":"complete","content":[]}}`,
			"ERROR", `{"jsonrpc":"2.0","id":"{id}","error":{"code":-32603,"message":"boom"}}`,
		)
		t.Run(name, func(t *testing.T) {
			trace, err := play(macros.Replace(script))
			if err != nil {
				t.Fatal(err)
			}
			got := strings.NewReplacer(
				`data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"{token}",`, "PROGRESS",
				`{"jsonrpc":"2.0","id":"{id}","result":{"resultType":"complete","content":[]}}`, "RESULT",
				`{"jsonrpc":"2.0","id":"{id}","error":{"code":-32603,"message":"boom"}}`, "ERROR",
			).Replace(trace)
			fmt.Fprintf(&out, "== %s\n%s----\n%s\n", name, script, got)
			if diff := cmp.Diff(strings.TrimSpace(want), strings.TrimSpace(got)); diff != "" && !*rewrite {
				t.Errorf("trace (-want +got):\n%s", diff)
			}
		})
	}
	if *rewrite && !t.Failed() {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
