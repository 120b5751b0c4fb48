package target

import (
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
)

// callBaggage is the baggage entry that marks the attempts of one call.
const callBaggage = "mcpflood.call"

// digest stands for a text of any length in a bounded memory.
type digest [16]byte

func digestOf(parts ...string) digest {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return digest(h.Sum(nil)[:16])
}

// arguments are those of build_report.
type arguments struct {
	Month          *string `json:"month"`
	IdempotencyKey string  `json:"idempotency_key"`
}

// parseArguments says what is wrong with them in problem; empty: nothing.
func parseArguments(raw json.RawMessage) (args arguments, problem string) {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := json.Unmarshal(raw, &args); err != nil {
		return args, "bad arguments: month and idempotency_key are strings"
	}
	if args.Month == nil {
		return args, "missing argument month: a string like 2026-09"
	}
	return args, ""
}

// identity is who made a request and what for, as far as it says so. Texts are
// opaque; absent ones are empty.
type identity struct {
	id, marker, trace, user string
}

// identify reads an identity: from _meta, else from headers of the same names.
func identify(id, key, traceparent, baggage string, header http.Header) identity {
	if traceparent == "" {
		traceparent = header.Get("Traceparent")
	}
	if baggage == "" {
		baggage = header.Get("Baggage")
	}
	who := identity{id: id, marker: key, trace: traceID(traceparent), user: bearer(header)}
	if who.marker == "" {
		who.marker = baggageValue(baggage, callBaggage)
	}
	return who
}

// bearer is the text of the bearer token; the target takes it for a name.
func bearer(header http.Header) string {
	scheme, token, ok := strings.Cut(header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// traceID is the trace id in a W3C traceparent (Trace Context, section 3.2);
// empty if it is malformed.
func traceID(traceparent string) string {
	parts := strings.Split(traceparent, "-")
	if len(parts) < 4 || len(parts[0]) != 2 || len(parts[1]) != 32 {
		return ""
	}
	if strings.Trim(parts[1], "0123456789abcdef") != "" {
		return ""
	}
	return parts[1]
}

// baggageValue finds one entry of a W3C baggage list (Baggage, section 3.2);
// properties after ";" are not part of the value.
func baggageValue(baggage, key string) string {
	for entry := range strings.SplitSeq(baggage, ",") {
		entry, _, _ = strings.Cut(entry, ";")
		name, value, ok := strings.Cut(entry, "=")
		if !ok || strings.TrimSpace(name) != key {
			continue
		}
		value = strings.TrimSpace(value)
		if text, err := url.PathUnescape(value); err == nil {
			return text
		}
		return value
	}
	return ""
}
