package wire

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Endpoint is a parsed target URL. Make one with [ParseEndpoint].
type Endpoint struct {
	Secure bool   // https
	Host   string // name or IP literal, without brackets; a zone is kept
	Port   uint16
	// Authority is the value of the Host header: the port only where it is not
	// the scheme's own.
	Authority string
	// Target is the request target: escaped path and query. It may hold
	// secrets in its query; print String instead.
	Target string
}

// ParseEndpoint reads an http or https URL. The path is kept as given ("/" if
// there is none). Userinfo is refused without being echoed.
func ParseEndpoint(raw string) (Endpoint, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The error of url.Parse quotes the URL, secrets included.
		return Endpoint{}, fmt.Errorf("target is not a URL: want http://host:port/path")
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return Endpoint{}, fmt.Errorf("target has no http:// or https:// in front: want http://host:port/path")
	}
	if u.User != nil {
		return Endpoint{}, fmt.Errorf("target carries a user name or password: leave it out and use --bearer or --header")
	}
	if u.Fragment != "" {
		return Endpoint{}, fmt.Errorf("target has a #fragment, which is never sent: leave it out")
	}
	e := Endpoint{Secure: u.Scheme == "https", Host: u.Hostname()}
	if e.Port, err = port(u); err != nil {
		return Endpoint{}, err
	}
	if e.Host == "" || !printable(e.Host) {
		return Endpoint{}, fmt.Errorf("target host %q: want an ASCII name or an IP literal (an international name in its xn-- form)", e.Host)
	}
	e.Authority = authority(e.Host, e.Port, e.Secure)
	e.Target = u.RequestURI()
	if !strings.HasPrefix(e.Target, "/") || !printable(e.Target) {
		return Endpoint{}, fmt.Errorf("target path or query has characters that must be %%-escaped")
	}
	return e, nil
}

func port(u *url.URL) (uint16, error) {
	text := u.Port()
	if text == "" {
		if u.Scheme == "https" {
			return 443, nil
		}
		return 80, nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("target port %q: want 1 to 65535", text)
	}
	return uint16(n), nil
}

// authority drops a zone: it means nothing to the other side (RFC 6874,
// section 1).
func authority(host string, port uint16, secure bool) string {
	name, _, _ := strings.Cut(host, "%")
	if strings.Contains(name, ":") {
		name = "[" + name + "]"
	}
	if (port == 443 && secure) || (port == 80 && !secure) {
		return name
	}
	return name + ":" + strconv.Itoa(int(port))
}

// printable reports whether s is visible ASCII without blanks.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// String is the URL without its query, fit for logs and manifests.
func (e Endpoint) String() string {
	scheme := "http"
	if e.Secure {
		scheme = "https"
	}
	path, _, _ := strings.Cut(e.Target, "?")
	return scheme + "://" + e.Authority + path
}

// Loopback reports whether every address of host, a name or an IP literal, is a
// loopback address: only those may be flooded without being allowed by name.
func Loopback(ctx context.Context, host string) (bool, error) {
	addrs, err := resolve(ctx, host)
	if err != nil {
		return false, err
	}
	return allLoopback(addrs), nil
}

func allLoopback(addrs []netip.Addr) bool {
	for _, a := range addrs {
		if !a.IsLoopback() {
			return false
		}
	}
	return len(addrs) > 0
}

// resolve lists the addresses of a name, or of a literal, in the resolver's
// order.
func resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a.Unmap()}, nil
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	if len(addrs) == 0 {
		return nil, fmt.Errorf("no address")
	}
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	return addrs, nil
}
