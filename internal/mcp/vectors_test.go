package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// vectors reads a file of hand-written cases.
func vectors(t *testing.T, path string) []txtar.File {
	t.Helper()
	a, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return a.Files
}

func TestCallVectors(t *testing.T) {
	report := ToolCall("build_report", json.RawMessage(`{"month":"2026-09"}`))
	task := "6f0c1f0e-6c1b-4a53-9f6d-0b8f4f3f9a11"
	calls := map[string]Call{
		"tools/call": {ID: StringID("r1-0007-a1"), Method: MethodToolsCall, Name: "build_report", Params: report, Meta: Meta{
			ClientInfo: json.RawMessage(`{"name":"load-tool","version":"0.1.0"}`), ProgressToken: "r1-0007-a1",
			Traceparent: "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"}},
		"tools/call again after a break": {ID: StringID("r1-0008-a2"), Method: MethodToolsCall, Name: "build_report", Params: report,
			Meta: Meta{ProgressToken: "r1-0008-a2"}},
		"tools/call of a later round": {ID: StringID("m2"), Method: MethodToolsCall, Name: "build_report",
			Params: Retry(report, json.RawMessage(`"b3BhcXVlLTE"`), nil)},
		"tasks/get": {ID: StringID("t2"), Method: "tasks/get", Name: task, Params: json.RawMessage(`{"taskId":"` + task + `"}`),
			Meta: Meta{Capabilities: json.RawMessage(`{"extensions":{"io.modelcontextprotocol/tasks":{}}}`)}},
		"server/discover of another version": {ID: IntID(1), Method: MethodDiscover, Meta: Meta{Version: "2099-01-01"}},
		"tools/call with mirrored arguments": {ID: StringID("p1"), Method: MethodToolsCall, Name: "年次報告",
			Params: ToolCall("年次報告", json.RawMessage(`{"region":"us-west1"}`)), ParamHeaders: []Field{{"Mcp-Param-Region", "us-west1"}}},
	}
	for _, f := range vectors(t, "testdata/calls.txtar") {
		c, ok := calls[f.Name]
		if !ok {
			t.Errorf("no call for the vector %q", f.Name)
			continue
		}
		var got strings.Builder
		for _, h := range c.Headers() {
			fmt.Fprintf(&got, "%s: %s\n", h.Name, h.Value)
		}
		fmt.Fprintf(&got, "\n%s\n", c.Body())
		if d := cmp.Diff(string(f.Data), got.String()); d != "" {
			t.Errorf("%s (-want +got):\n%s", f.Name, d)
		}
		delete(calls, f.Name)
	}
	for name := range calls {
		t.Errorf("no vector for the call %q", name)
	}
}

// idText is an id as JSON shows it.
func idText(id ID) string { return string(id.Append(nil)) }

// say puts a decoded message into the words of the vectors.
func say(m Message, err error) string {
	if err != nil {
		return err.Error()
	}
	s := []string{m.Kind.String()}
	switch m.Kind {
	case Request:
		s = append(s, "id="+idText(m.ID), m.Method)
	case Notification:
		if m.Method != MethodProgress {
			return m.Kind.String() + " " + m.Method
		}
		p := m.Progress
		amount := fmt.Sprint(p.Progress)
		if p.HasTotal {
			amount += fmt.Sprint("/", p.Total)
		}
		s = []string{"progress", "token=" + idText(p.Token), amount}
		if p.Message != "" {
			s = append(s, fmt.Sprintf("%q", p.Message))
		}
		if p.Done() {
			s = append(s, "done")
		}
	case ResultResponse:
		r := m.Result
		s = append(s, "id="+idText(m.ID), r.Type.String())
		switch {
		case r.Type == ResultInvalid:
			s = append(s, "("+r.Reason+")")
		case r.TaskID != "":
			s = append(s, r.TaskID)
		}
		if r.RequestState != nil {
			s = append(s, "state="+string(r.RequestState))
		}
		if r.InputRequests != nil {
			s = append(s, "requests="+string(r.InputRequests))
		}
		if r.IsError {
			s = append(s, "isError", fmt.Sprintf("%q", r.Text))
		}
	case ErrorResponse:
		s = append(s, "id="+idText(m.ID), fmt.Sprint(m.Err.Code), fmt.Sprintf("%q", m.Err.Message))
		if m.Err.Data != nil {
			s = append(s, "data="+string(m.Err.Data))
		}
	}
	if m.Cancelled() {
		s = append(s, "cancelled")
	}
	return strings.Join(s, " ")
}

func TestAnswerVectors(t *testing.T) {
	for _, f := range vectors(t, "testdata/answers.txtar") {
		want, body, _ := strings.Cut(string(f.Data), "\n")
		if got := say(DecodeMessage([]byte(body))); "want: "+got != want {
			t.Errorf("%s: DecodeMessage gives\n      %s\n%s", f.Name, got, want)
		}
	}
}

// readRequestVector splits a case: what is wanted, its fields over those of
// the base, and its body (empty: that of the base).
func readRequestVector(f txtar.File, base http.Header) (want string, h http.Header, body string) {
	head, body, _ := strings.Cut(string(f.Data), "\n\n")
	lines := strings.Split(strings.TrimSuffix(head, "\n"), "\n")
	want = strings.TrimPrefix(lines[0], "want: ")
	h = http.Header{}
	if len(lines) == 1 || strings.HasPrefix(lines[1], "+") {
		h = base.Clone()
	}
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(strings.TrimPrefix(line, "+"), ":")
		if value == "" {
			h.Del(name)
		} else {
			h.Set(name, strings.TrimPrefix(value, " "))
		}
	}
	return want, h, strings.TrimSuffix(body, "\n")
}

func TestRequestVectors(t *testing.T) {
	files := vectors(t, "testdata/requests.txtar")
	_, base, goodBody := readRequestVector(files[0], nil)
	for _, f := range files {
		want, h, body := readRequestVector(f, base)
		if body == "" {
			body = goodBody
		}
		r, rpc := ValidateRequest(h, []byte(body))
		got := strings.TrimSpace("ok " + r.Method + " " + r.Name)
		switch {
		case rpc != nil:
			got = fmt.Sprintf("%d %d id=%s", rpc.HTTPStatus, rpc.Code, idText(rpc.ID))
			if rpc.Data != nil {
				got += " data=" + string(rpc.Data)
			}
			if m, err := DecodeMessage(rpc.Body()); err != nil || m.Kind != ErrorResponse || m.ID != rpc.ID || m.Err.Code != rpc.Code {
				t.Errorf("%s: the answer reads back as %+v, %v", f.Name, m, err)
			}
			if rpc.ID.IsZero() && strings.Contains(string(rpc.Body()), `"id"`) {
				t.Errorf("%s: an error without an id leaves it out, got %s", f.Name, rpc.Body())
			}
		case r.IsNotification():
			got = "notification " + r.Method
		}
		if got != want {
			t.Errorf("%s: got %s (%v), want %s", f.Name, got, rpc, want)
		}
	}
}
