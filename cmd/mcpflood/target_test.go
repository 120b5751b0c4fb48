package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTargetCommand(t *testing.T) {
	dir := t.TempDir()
	portFile, logFile, truthFile := filepath.Join(dir, "addr"), filepath.Join(dir, "log"), filepath.Join(dir, "truth")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	cmd := newTargetCommand()
	var stderr bytes.Buffer
	cmd.SetErr(&stderr)
	cmd.SetOut(io.Discard)
	cmd.SetArgs([]string{"--addr", "127.0.0.1:0", "--port-file", portFile, "--log", logFile, "--truth", truthFile,
		"--steps", "2", "--step-time", "1ms", "--tail-time", "0", "--fault", "run-on=0.5", "--fault", "brick"})
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(ctx) }()
	var addr string
	for end := time.Now().Add(10 * time.Second); addr == ""; time.Sleep(time.Millisecond) {
		if b, err := os.ReadFile(portFile); err == nil {
			addr = strings.TrimSpace(string(b))
		}
		if time.Now().After(end) {
			t.Fatalf("no port file; stderr: %s", stderr.String())
		}
	}
	req, err := http.NewRequest("POST", "http://"+addr+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"build_report","arguments":{"month":"2026-09"},`+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"progressToken":"p7"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "build_report", "Authorization": "Bearer alice"} {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || !strings.Contains(string(body), `"resultType":"complete"`) {
		t.Errorf("answer %q, %v, want a result", body, err)
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("target ended with %v, want nil", err)
	}
	if !strings.Contains(stderr.String(), "http://"+addr+"/mcp (faults: run-on=0.5, brick; seed 1)") {
		t.Errorf("stderr = %q", stderr.String())
	}
	for file, want := range map[string]string{logFile: "build_report finished id=7 marker=- trace=- user=alice t=", truthFile: `"end":"finished"`} {
		if b, err := os.ReadFile(file); err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s = %q, %v, want %q in it", filepath.Base(file), b, err, want)
		}
	}
}

func TestTargetCommandRefuses(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--fault", "runon"}, "unknown fault"},
		{[]string{"--fault", "run-on=2"}, "bad share"},
		{[]string{"--fault", "brick", "--fault", "brick"}, "given twice"},
		{[]string{"--steps", "0"}, "bad --steps"},
		{[]string{"--answer", "xml"}, "unknown answer form"},
		{[]string{"--addr", "nowhere"}, "free port"},
		{[]string{"--log", "/nowhere/log"}, "/nowhere/log"},
		{[]string{"extra"}, "extra"},
	} {
		cmd := newTargetCommand()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(tt.args)
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("target %v = %v, want %q", tt.args, err, tt.want)
		}
	}
}
