package main

import (
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/target"
)

// TestTLSAndIPv6 floods the reference server through TLS on ::1.
func TestTLSAndIPv6(t *testing.T) {
	mcpflood(t)
	for _, fault := range []string{"", "run-on"} {
		t.Run("fault="+fault, func(t *testing.T) {
			logFile := filepath.Join(t.TempDir(), "server.log")
			log, err := os.Create(logFile)
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close()
			conf := target.Config{StepTime: 100 * time.Millisecond, Log: log}
			want := exitPass
			if fault != "" {
				f, err := target.ParseFault(fault)
				if err != nil {
					t.Fatal(err)
				}
				conf.Faults, want = []target.Fault{f}, exitFail
			}
			tg, err := target.New(conf)
			if err != nil {
				t.Fatal(err)
			}
			defer tg.Close()
			ln, err := net.Listen("tcp", "[::1]:0")
			if err != nil {
				t.Fatal(err)
			}
			web := httptest.NewUnstartedServer(tg.Handler())
			web.Listener.Close()
			web.Listener = ln
			web.StartTLS()
			defer web.Close()

			s := &server{addr: ln.Addr().String(), log: logFile}
			dir := filepath.Join(t.TempDir(), "run")
			args := append([]string{"run", web.URL + target.PathMCP, "--tool", "build_report", "--arg", "month=2026-09", "-o", dir, "--streams", "20", "--duration", "3s", "--watch", "3s",
				"--cut", "fin@uniform(0s,800ms):30%", "--cut", "reset@mid:20%", "--cut", "vanish@mid:5%"}, s.withIDs()...)
			if fault == "" {
				if o := invoke(t, "", args...); o.code == exitPass || !strings.Contains(o.stderr, "--insecure") {
					t.Errorf("an unknown certificate: exit code %d, %s", o.code, o.stderr)
				}
			}
			o := invoke(t, dir, append(args, "--insecure")...)
			o.want(t, want)
			if v := o.sum.Counts.Verdicts; want == exitPass && (v.Stopped == 0 || len(o.findings(history.SeverityWarn)) > 0) || want == exitFail && v.RanOn == 0 {
				t.Errorf("verdicts %+v, findings %v\n%s", v, o.findings(history.SeverityWarn), o.stdout)
			}
		})
	}
}
