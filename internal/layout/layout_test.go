// Package layout holds the tests of the repository's own shape.
package layout

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/mcpflood/mcpflood/"

// mayImport is the law of the layout: what each directory's packages may import
// of our own. A name covers the packages below it; "*" allows all but what
// follows with a minus sign.
var mayImport = map[string]string{
	"cmd/mcpflood":     "* -peers",
	"chaos":            "history",
	"history":          "",
	"flood":            "chaos history results internal -internal/proxy -internal/witness/otlp -internal/audit -internal/jsapi -internal/script",
	"results":          "history internal/latency internal/metric internal/oracle internal/cost internal/stats results",
	"target":           "internal/mcp internal/sse",
	"internal/mcp":     "",
	"internal/sse":     "",
	"internal/wire":    "history",
	"internal/stream":  "internal/mcp internal/sse chaos history",
	"internal/drive":   "internal/stream internal/wire internal/mcp chaos history",
	"internal/load":    "history",
	"internal/audit":   "flood results chaos history internal/oracle",
	"internal/bench":   "chaos history internal target",
	"internal/probe":   "internal/mcp internal/sse internal/stream internal/drive internal/wire history",
	"internal/witness": "internal/mcp history",
	"internal/oracle":  "history",
	"internal/cost":    "history internal/oracle",
	"internal/latency": "",
	"internal/metric":  "history internal/latency internal/oracle internal/cost",
	"internal/stats":   "",
}

// pure lists the packages that do no I/O; impure what they may not import.
// internal/mcp is one of them, but takes the names of statuses and the parsing
// of hosts from net/http and net.
var pure = []string{"chaos", "internal/sse", "internal/stream", "internal/oracle", "internal/cost", "internal/stats"}

var impure = []string{"net", "net/http", "os", "os/exec", "syscall", "golang.org/x/sys/unix"}

func TestImports(t *testing.T) {
	root := "../.."
	seen := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() {
			if rel == "peers" || d.Name() == "node_modules" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && rel != "." {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		dir := filepath.ToSlash(filepath.Dir(rel))
		if dir == "." {
			t.Errorf("%s: the root holds no Go files", rel)
			return nil
		}
		owner, ok := owner(dir)
		if !ok {
			t.Errorf("%s: package %s is not in the layout; add it with what it may import", rel, dir)
			return nil
		}
		seen[owner] = true
		checkFile(t, path, rel, owner)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir := range mayImport {
		if !seen[dir] {
			t.Errorf("the layout names %s, which has no Go files", dir)
		}
	}
}

// owner is the longest entry of the layout that covers dir.
func owner(dir string) (string, bool) {
	for d := dir; d != "."; d = filepath.ToSlash(filepath.Dir(d)) {
		if _, ok := mayImport[d]; ok {
			return d, true
		}
	}
	return "", false
}

func checkFile(t *testing.T, path, rel, owner string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Error(err)
		return
	}
	for _, spec := range f.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Errorf("%s: import %s: %v", rel, spec.Path.Value, err)
			continue
		}
		if slices.Contains(pure, owner) && slices.Contains(impure, name) {
			t.Errorf("%s: %s is pure: it may not import %s", rel, owner, name)
		}
		ours, ok := strings.CutPrefix(name, module)
		if ok && !allowed(mayImport[owner], ours) && !covers(owner, ours) {
			t.Errorf("%s: %s may not import %s (may: %s)", rel, owner, ours, mayImport[owner])
		}
	}
}

func allowed(law, dir string) bool {
	ok := false
	for rule := range strings.FieldsSeq(law) {
		if no, found := strings.CutPrefix(rule, "-"); found {
			if covers(no, dir) {
				return false
			}
			continue
		}
		ok = ok || rule == "*" || covers(rule, dir)
	}
	return ok
}

func covers(rule, dir string) bool { return dir == rule || strings.HasPrefix(dir, rule+"/") }

// TestNoForeignK6 holds that no module file of ours resolves k6 itself, whose
// licence the product does not share.
func TestNoForeignK6(t *testing.T) {
	for _, name := range []string{"../../go.mod", "../../go.sum"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "go.k6.io/k6") {
			t.Errorf("%s names go.k6.io/k6", name)
		}
	}
}
