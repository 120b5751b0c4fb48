package target

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/mcpflood/mcpflood/internal/mcp"
)

// toolName is the tool that does something.
const toolName = "build_report"

// fillerPrefix begins the names of the tools that do nothing.
const fillerPrefix = "filler_"

// listTTLMillis is how long clients may keep discovery and tool lists: they never
// change while a target runs.
const listTTLMillis = 60_000

// maxMonthText bounds the argument that a result repeats, in bytes.
const maxMonthText = 64

// toolList is every tool in the order in which tools/list shows them.
func toolList(fillers int) []mcp.Tool {
	yes, no := true, false
	out := []mcp.Tool{{
		Name:        toolName,
		Title:       "Build a report",
		Description: "Builds the report of a month in several steps, e-mails it to the team and returns a summary.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"month":{"type":"string","description":"the month, like 2026-09"},` +
			`"idempotency_key":{"type":"string","description":"the team is e-mailed once for each key"}},"required":["month"]}`),
		Annotations: mcp.Annotations{ReadOnly: &no, Idempotent: &yes, Destructive: &no, OpenWorld: &no},
	}}
	for i := range fillers {
		out = append(out, mcp.Tool{
			Name:        fillerPrefix + strconv.Itoa(i+1),
			Description: "Does nothing, at once.",
			InputSchema: json.RawMessage(`{"type":"object"}`),
			Annotations: mcp.Annotations{ReadOnly: &yes},
		})
	}
	return out
}

func serverInfo(version string) json.RawMessage {
	info, err := json.Marshal(map[string]string{"name": "mcpflood-target", "version": version})
	if err != nil {
		panic("target: invariant: a map of strings is JSON: " + err.Error())
	}
	return info
}

// isFiller reports whether name is one of n fillers.
func isFiller(name string, n int) bool {
	i, err := strconv.Atoi(strings.TrimPrefix(name, fillerPrefix))
	return err == nil && 1 <= i && i <= n && name == fillerPrefix+strconv.Itoa(i)
}

// report is the result of a finished call.
func (s *Server) report(month string) json.RawMessage {
	month = month[:min(len(month), maxMonthText)]
	return mcp.CallResult{
		Text:       fmt.Sprintf("report of %s: %d steps done, the team has its e-mail", month, s.cfg.Steps),
		ServerInfo: s.info,
	}.JSON()
}

// discover is the result of server/discover.
func (s *Server) discover() json.RawMessage {
	return mcp.Discover{
		Versions:     []string{mcp.Version},
		Capabilities: json.RawMessage(`{"tools":{}}`),
		Instructions: "build_report takes a while; close its response stream to cancel it",
		TTLMs:        listTTLMillis,
		ServerInfo:   s.info,
	}.JSON()
}

// cursorPrefix keeps cursors from being taken for numbers to compute with.
const cursorPrefix = "after-"

// list is the result of tools/list from a cursor on; nil: from the start.
func (s *Server) list(cursor *string) (result json.RawMessage, ok bool) {
	from := 0
	if cursor != nil {
		n, err := strconv.Atoi(strings.TrimPrefix(*cursor, cursorPrefix))
		if err != nil || n < 1 || n >= len(s.tools) || *cursor != cursorPrefix+strconv.Itoa(n) {
			return nil, false
		}
		from = n
	}
	to := len(s.tools)
	if s.cfg.PageSize > 0 {
		to = min(to, from+s.cfg.PageSize)
	}
	page := mcp.ToolList{Tools: s.tools[from:to], TTLMs: listTTLMillis, ServerInfo: s.info}
	if to < len(s.tools) {
		next := cursorPrefix + strconv.Itoa(to)
		page.NextCursor = &next
	}
	return page.JSON(), true
}
