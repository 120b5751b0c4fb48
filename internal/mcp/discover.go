package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Discover is a result of server/discover (server/discover).
type Discover struct {
	SupportedVersions []string
	Capabilities      json.RawMessage // an object
	Instructions      string
	TTLMs             int64
	CacheScope        string          // public, private
	ServerInfo        json.RawMessage // an object; nil: not given
}

// maxVersions bounds the versions that are read of a list.
const maxVersions = 64

// ParseDiscover reads a result of server/discover. Only supportedVersions must
// be there.
func ParseDiscover(result json.RawMessage) (Discover, error) {
	var d Discover
	if !json.Valid(result) {
		return d, errNotJSON
	}
	for m := members(result); m.next(); {
		switch string(m.key) {
		case "supportedVersions":
			d.SupportedVersions = versions(m.val)
		case "capabilities":
			d.Capabilities = m.val
		case "instructions":
			d.Instructions = unquote(m.val, MaxText)
		case "ttlMs":
			d.TTLMs, _ = safeInteger(m.val)
		case "cacheScope":
			d.CacheScope = unquote(m.val, MaxText)
		case "_meta":
			if v, _ := member(m.val, MetaServerInfo); isObject(v) {
				d.ServerInfo = v
			}
		}
	}
	if len(d.SupportedVersions) == 0 {
		return d, errors.New("a result of server/discover without supportedVersions")
	}
	return d, nil
}

func versions(v []byte) []string {
	var out []string
	for e := elements(v); e.next() && len(out) < maxVersions; {
		if isString(e.val) {
			out = append(out, unquote(e.val, MaxText))
		}
	}
	return out
}

// HasCapability reports whether the server offers a capability, by its path:
// "tools", or "extensions" and an extension's id.
func (d Discover) HasCapability(path ...string) bool {
	return ServerMeta{Capabilities: d.Capabilities}.HasCapability(path...)
}

// JSON is the result object, resultType included.
func (d Discover) JSON() json.RawMessage {
	dst := append([]byte(nil), `{"resultType":"complete","supportedVersions":[`...)
	for i, v := range d.SupportedVersions {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendQuoted(dst, v)
	}
	dst = append(append(dst, `],"capabilities":`...), orEmpty(d.Capabilities)...)
	if d.Instructions != "" {
		dst = appendQuoted(append(dst, `,"instructions":`...), d.Instructions)
	}
	dst = appendCacheHints(dst, d.TTLMs, d.CacheScope)
	return append(appendServerInfo(dst, d.ServerInfo), '}')
}

// ToolList is a result of tools/list.
type ToolList struct {
	Tools      []Tool
	NextCursor *string // nil: the last page
	TTLMs      int64
	CacheScope string          // public, private
	ServerInfo json.RawMessage // an object; nil: left out
}

// JSON is the result object, resultType included. A tool whose InputSchema is
// no JSON panics: it is ours.
func (l ToolList) JSON() json.RawMessage {
	tools, err := json.Marshal(append([]Tool{}, l.Tools...))
	if err != nil {
		panic("mcp: invariant: our own tools are JSON: " + err.Error())
	}
	dst := append([]byte(nil), `{"resultType":"complete","tools":`...)
	dst = append(dst, tools...)
	if l.NextCursor != nil {
		dst = appendQuoted(append(dst, `,"nextCursor":`...), *l.NextCursor)
	}
	dst = appendCacheHints(dst, l.TTLMs, l.CacheScope)
	return append(appendServerInfo(dst, l.ServerInfo), '}')
}

// appendCacheHints appends what every complete list result must carry
// (server/utilities/caching).
func appendCacheHints(dst []byte, ttlMs int64, scope string) []byte {
	if scope == "" {
		scope = "public"
	}
	dst = fmt.Appendf(dst, `,"ttlMs":%d,"cacheScope":`, max(ttlMs, 0))
	return appendQuoted(dst, scope)
}

// Era is which family of revisions a server speaks.
type Era uint8

// The eras (basic/versioning). Modern is 2026-07-28 and later, legacy the
// revisions that begin with initialize.
const (
	EraUnknown Era = iota
	EraModern
	EraLegacy
)

var eraNames = [...]string{"unknown", "modern", "legacy"}

func (e Era) String() string {
	if int(e) < len(eraNames) {
		return eraNames[e]
	}
	return "invalid"
}

// maxWords bounds what is quoted of a server in words for people, in bytes.
const maxWords = 200

// DetectEra tells a server's era from its answer to server/discover, and says
// in words what the answer was. body is the JSON-RPC message: the whole body,
// or the data of the last event of a stream. Modern does not mean that the
// server speaks [Version]: the words say so if it does not, and spoken is then
// false.
func DetectEra(status int, contentType string, body []byte) (era Era, spoken bool, words string) {
	m, err := DecodeMessage(body)
	switch {
	case err == nil && m.Kind == ErrorResponse:
		return eraOfError(status, m.Err)
	case err == nil && m.Kind == ResultResponse && status/100 == 2:
		d, err := ParseDiscover(m.Result.Raw)
		if err != nil {
			return EraUnknown, false, "the server answers server/discover with " + err.Error()
		}
		if !slices.Contains(d.SupportedVersions, Version) {
			return eraOfVersions(d.SupportedVersions)
		}
		return EraModern, true, "the server speaks " + Version
	}
	what := fmt.Sprintf("HTTP %d", status)
	if t, _, _ := strings.Cut(contentType, ";"); t != "" {
		what += fmt.Sprintf(" (%.80q)", t)
	}
	switch {
	case status == http.StatusUnauthorized:
		return EraUnknown, false, what + ": the server wants credentials"
	case status == http.StatusForbidden:
		return EraUnknown, false, what + ": the server refuses this client"
	case status == http.StatusBadRequest:
		return EraLegacy, false, what + " without an MCP error: a server older than " + Version
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return EraUnknown, false, what + ": no MCP endpoint at this path, or one older than " + Version
	case status/100 == 3:
		return EraUnknown, false, what + ": the server redirects: use the address it redirects to"
	case status == http.StatusTooManyRequests, status/100 == 5:
		return EraUnknown, false, what + ": the server cannot answer now"
	}
	return EraUnknown, false, what + ": not an MCP answer"
}

// eraOfError judges a JSON-RPC error (basic/versioning, "Backward Compatibility").
func eraOfError(status int, e Error) (Era, bool, string) {
	what := fmt.Sprintf("HTTP %d, error %d %.*q", status, e.Code, maxWords, e.Message)
	switch {
	case e.Code == CodeVersion:
		list, _ := member(e.Data, "supported")
		return eraOfVersions(versions(list))
	case e.Code == CodeHeaderMismatch, e.Code == CodeMissingCapability:
		return EraModern, true, what
	case e.Code == CodeMethodNotFound && status == http.StatusNotFound:
		return EraModern, true, what + ": it does not implement server/discover, which it must"
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return EraUnknown, false, what + ": the server wants credentials"
	case status == http.StatusTooManyRequests, status/100 == 5:
		return EraUnknown, false, what + ": the server cannot answer now"
	}
	return EraLegacy, false, what + ": a server older than " + Version
}

// eraOfVersions judges the versions of a server that did not name ours, or did
// so only in an error.
func eraOfVersions(list []string) (Era, bool, string) {
	if slices.Contains(list, Version) {
		return EraModern, true, "the server speaks " + Version
	}
	shown := make([]string, 0, len(list))
	modern := false
	for _, v := range list {
		modern = modern || v > Version // revisions are dates
		shown = append(shown, fmt.Sprintf("%.20q", v))
	}
	words := "the server does not speak " + Version
	if len(list) > 0 {
		words += ", only " + listOf(shown)
	}
	if len(list) > 0 && !modern {
		return EraLegacy, false, words
	}
	return EraModern, false, words
}
