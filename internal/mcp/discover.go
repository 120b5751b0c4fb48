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
	Versions     []string        // the revisions it speaks
	Capabilities json.RawMessage // an object
	Instructions string
	TTLMs        int64
	CacheScope   string          // public, private
	ServerInfo   json.RawMessage // an object; nil: not given
	// Server is name and version of ServerInfo, for people; not written by JSON.
	Server string
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
			d.Versions = versions(m.val)
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
				d.ServerInfo, d.Server = v, serverName(v)
			}
		}
	}
	if len(d.Versions) == 0 {
		return d, errors.New("a result of server/discover without supportedVersions")
	}
	return d, nil
}

// serverName is the name and the version of a server's info.
func serverName(info []byte) string {
	name, _ := member(info, "name")
	version, _ := member(info, "version")
	return strings.TrimSpace(unquote(name, maxWords) + " " + unquote(version, maxWords))
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
	for i, v := range d.Versions {
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

// appendCacheHints appends what every complete list result must carry
// (server/utilities/caching).
func appendCacheHints(dst []byte, ttlMs int64, scope string) []byte {
	if scope == "" {
		scope = "public"
	}
	dst = fmt.Appendf(dst, `,"ttlMs":%d,"cacheScope":`, max(ttlMs, 0))
	return appendQuoted(dst, scope)
}

// Era is which family of revisions a server speaks (basic/versioning).
type Era uint8

// The eras.
const (
	EraUnknown Era = iota // no telling, or only revisions later than [Version]
	EraModern             // [Version], as far as can be told
	EraLegacy             // only revisions that begin with initialize
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

// ReadEra tells a server's era from its answer to server/discover, and says in
// words for people what the answer was. body is the JSON-RPC message: the whole
// body, or the data of the last event of a stream.
func ReadEra(status int, contentType string, body []byte) (Era, string) {
	m, err := DecodeMessage(body)
	switch {
	case err == nil && m.Kind == ErrorResponse:
		return eraOfError(status, m.Err)
	case err == nil && m.Kind == ResultResponse && status/100 == 2:
		d, err := ParseDiscover(m.Result.Raw)
		if err != nil {
			return EraUnknown, "the server answers server/discover with " + err.Error()
		}
		return eraOfVersions(d.Versions)
	}
	what := fmt.Sprintf("HTTP %d", status)
	if t, _, _ := strings.Cut(contentType, ";"); t != "" {
		what += fmt.Sprintf(" (%.80q)", t)
	}
	switch {
	case status == http.StatusBadRequest:
		return EraLegacy, what + " without an MCP error: a server older than " + Version
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return EraUnknown, what + ": no MCP endpoint at this path, or one older than " + Version
	case status/100 == 3:
		return EraUnknown, what + ": the server redirects: use the address it redirects to"
	case denied(status) != "":
		return EraUnknown, what + ": " + denied(status)
	}
	return EraUnknown, what + ": not an MCP answer"
}

// denied says why a status means no answer to the question; empty: it does not.
func denied(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "the server wants credentials"
	case status == http.StatusForbidden:
		return "the server refuses this client"
	case status == http.StatusTooManyRequests, status/100 == 5:
		return "the server cannot answer now"
	}
	return ""
}

// eraOfError judges a JSON-RPC error (basic/versioning, "Backward Compatibility").
func eraOfError(status int, e Error) (Era, string) {
	what := fmt.Sprintf("HTTP %d, error %d %.*q", status, e.Code, maxWords, e.Message)
	switch {
	case e.Code == CodeVersion:
		list, _ := member(e.Data, "supported")
		return eraOfVersions(versions(list))
	case e.Code == CodeHeaderMismatch, e.Code == CodeMissingCapability:
		return EraModern, what
	case e.Code == CodeMethodNotFound && status == http.StatusNotFound:
		return EraModern, what + ": it does not implement server/discover, which it must"
	case denied(status) != "":
		return EraUnknown, what + ": " + denied(status)
	}
	return EraLegacy, what + ": a server older than " + Version
}

// eraOfVersions judges the revisions that a server lists.
func eraOfVersions(list []string) (Era, string) {
	if slices.Contains(list, Version) {
		return EraModern, "the server speaks " + Version
	}
	if len(list) == 0 {
		return EraUnknown, "the server does not speak " + Version + " and names no other revision"
	}
	era := EraLegacy
	shown := make([]string, 0, len(list))
	for _, v := range list {
		if v > Version { // revisions are dates
			era = EraUnknown
		}
		shown = append(shown, fmt.Sprintf("%.20q", v))
	}
	return era, "the server does not speak " + Version + ", only " + listOf(shown)
}
