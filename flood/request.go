package flood

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/mcpflood/mcpflood/history"
	"github.com/mcpflood/mcpflood/internal/drive"
	"github.com/mcpflood/mcpflood/internal/mcp"
	"github.com/mcpflood/mcpflood/internal/wire"
)

// requests makes the bytes of every attempt. It is safe for concurrent use.
type requests struct {
	nonce    history.Nonce
	endpoint wire.Endpoint
	tool     mcp.Tool
	pairs    [][2]string // --arg
	json     string      // --args-json
	fixed    *arguments  // set when nothing in them changes from call to call
	headers  []mcp.Field
	client   json.RawMessage
}

// arguments are a call's arguments with the header fields that mirror them.
type arguments struct {
	json    json.RawMessage
	headers []mcp.Field
}

var placeholder = regexp.MustCompile(`\{\{\s*\.?(\w*)\s*\}\}`)

// newRequests makes requests of a valid configuration. It checks what only the
// tool can tell: the arguments.
func newRequests(cfg Config, nonce history.Nonce, endpoint wire.Endpoint, tool mcp.Tool) (*requests, error) {
	r := &requests{nonce: nonce, endpoint: endpoint, tool: tool, json: cfg.ArgsJSON, headers: authHeaders(cfg)}
	r.client = json.RawMessage(fmt.Sprintf(`{"name":"mcpflood","version":%q}`, Version()))
	for _, kv := range cfg.Args {
		k, v, _ := strings.Cut(kv, "=")
		r.pairs = append(r.pairs, [2]string{k, v})
	}
	sample := history.Ref{Call: 1, Attempt: 1}
	args, err := r.arguments(sample)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(fmt.Sprint(r.pairs, r.json), "{{") {
		r.fixed = args
	}
	_, err = r.bytes(drive.Ask{Ref: sample, ID: sample})
	return r, err
}

func authHeaders(cfg Config) []mcp.Field {
	var out []mcp.Field
	if cfg.Bearer != "" {
		out = append(out, mcp.Field{Name: "Authorization", Value: "Bearer " + cfg.Bearer})
	}
	for _, h := range cfg.Headers {
		k, v, _ := strings.Cut(h, ":")
		out = append(out, mcp.Field{Name: strings.TrimSpace(k), Value: strings.TrimSpace(v)})
	}
	return out
}

func checkPlaceholders(where, text string, attempt bool) error {
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		switch m[1] {
		case "Call", "Marker", "Seq":
		case "Attempt":
			if !attempt {
				return fmt.Errorf("%s: {{.Attempt}} is for headers only: the arguments of a call stay the same over its attempts", where)
			}
		default:
			return fmt.Errorf("%s: unknown placeholder %s: want {{.Call}}, {{.Marker}}, {{.Seq}} or, in headers, {{.Attempt}}", where, m[0])
		}
	}
	return nil
}

// fill replaces the placeholders for one attempt.
func (r *requests) fill(text string, ref history.Ref) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	return placeholder.ReplaceAllStringFunc(text, func(p string) string {
		switch placeholder.FindStringSubmatch(p)[1] {
		case "Call":
			return ref.Whole().String()
		case "Marker":
			return r.nonce.Marker(ref)
		case "Seq":
			return strconv.FormatUint(ref.Call, 10)
		}
		return strconv.FormatUint(uint64(ref.Attempt), 10)
	})
}

// arguments makes a call's arguments; they are the same for all its attempts.
func (r *requests) arguments(ref history.Ref) (*arguments, error) {
	if r.fixed != nil {
		return r.fixed, nil
	}
	out := &arguments{json: json.RawMessage(r.fill(r.json, ref))}
	if r.json == "" {
		kv := make(map[string]string, len(r.pairs))
		for _, p := range r.pairs {
			kv[p[0]] = r.fill(p[1], ref)
		}
		var err error
		if out.json, err = r.tool.TypedArgs(kv); err != nil {
			return nil, err
		}
	} else if trimmed := strings.TrimSpace(string(out.json)); !json.Valid(out.json) || !strings.HasPrefix(trimmed, "{") {
		return nil, fmt.Errorf("--args-json is no JSON object: %.80q", trimmed)
	}
	var err error
	out.headers, err = r.tool.ParamHeaders(out.json)
	return out, err
}

// signal makes the notification that a client of another transport would send
// to cancel an attempt. It is no request: it has neither id nor result.
func (r *requests) signal(ref history.Ref) ([]byte, error) {
	fields := []mcp.Field{{Name: "Content-Type", Value: "application/json"}, {Name: "Accept", Value: "application/json, text/event-stream"},
		{Name: mcp.HeaderVersion, Value: mcp.Version}, {Name: mcp.HeaderMethod, Value: mcp.MethodCancelled}}
	for _, h := range r.headers {
		fields = append(fields, mcp.Field{Name: h.Name, Value: r.fill(h.Value, ref)})
	}
	params, err := json.Marshal(map[string]any{"requestId": r.nonce.ID(ref), "reason": "the user left"})
	if err != nil {
		return nil, err
	}
	return wire.AppendRequest(nil, r.endpoint, fields, mcp.AppendNotification(nil, mcp.MethodCancelled, params))
}

// bytes makes one attempt's HTTP request.
func (r *requests) bytes(ask drive.Ask) ([]byte, error) {
	ref := ask.Ref
	args, err := r.arguments(ref)
	if err != nil {
		return nil, err
	}
	call := mcp.Call{
		ID:     mcp.StringID(r.nonce.ID(ask.ID)),
		Method: mcp.MethodToolsCall,
		Name:   r.tool.Name,
		Params: mcp.ToolCall(r.tool.Name, args.json),
		Meta: mcp.Meta{
			ClientInfo:    r.client,
			ProgressToken: r.nonce.Token(ref),
			Traceparent:   r.nonce.Traceparent(ref),
			Baggage:       "mcpflood.call=" + r.nonce.Marker(ref),
		},
		ParamHeaders: args.headers,
	}
	if ask.State != nil {
		call.Params = mcp.Retry(call.Params, ask.State, nil)
	}
	if ask.Variant == history.VariantJSON {
		call.Meta.ProgressToken = ""
	}
	fields := append(call.Headers(),
		mcp.Field{Name: "traceparent", Value: call.Meta.Traceparent},
		mcp.Field{Name: "baggage", Value: call.Meta.Baggage})
	if ask.Variant == history.VariantGzip {
		fields = append(fields, mcp.Field{Name: "Accept-Encoding", Value: "gzip"})
	}
	for _, h := range r.headers {
		fields = append(fields, mcp.Field{Name: h.Name, Value: r.fill(h.Value, ref)})
	}
	return wire.AppendRequest(nil, r.endpoint, fields, call.Body())
}
