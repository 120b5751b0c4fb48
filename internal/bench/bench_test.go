package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// TestLeanerThanNetHTTP runs the benchmark in small and holds its two claims:
// at most a quarter of a plain client's memory a stream, and earlier cuts.
func TestLeanerThanNetHTTP(t *testing.T) {
	if testing.Short() {
		t.Skip("starts thousands of streams: not in -short")
	}
	if _, err := os.Stat("/proc/self/statm"); err != nil {
		t.Skip("memory is read from /proc, which this system does not have")
	}
	bin := filepath.Join(t.TempDir(), "bench")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(bin, "-few", "500", "-many", "4500", "-hold", "3s", "-cuts", "1000", "-repeat", "3").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("\n%s", out)
	ratios := regexp.MustCompile(`(?m)ratio +(?:p50 )?([0-9.]+)`).FindAllSubmatch(out, -1)
	if len(ratios) != 2 {
		t.Fatalf("%d ratios in\n%s", len(ratios), out)
	}
	for i, limit := range []float64{0.25, 1} {
		v, err := strconv.ParseFloat(string(ratios[i][1]), 64)
		if err != nil || v >= limit {
			t.Errorf("ratio %s, want below %v", ratios[i][1], limit)
		}
	}
}
