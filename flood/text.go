package flood

import (
	"fmt"
	"net/url"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Masked stands where a secret was.
const Masked = "***"

// Field is one setting of a Config: what the command line needs to offer it.
type Field struct {
	Name, Short, Group, Usage, Default string
	Secret                             bool
	Value                              reflect.Value // settable: string, []string, int, uint64, bool, time.Duration
}

// Fields lists the settings of c in order.
func (c *Config) Fields() []Field {
	v := reflect.ValueOf(c).Elem()
	t := v.Type()
	out := make([]Field, 0, t.NumField())
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		out = append(out, Field{
			Name: tag.Get("flag"), Short: tag.Get("short"), Group: tag.Get("group"), Usage: tag.Get("usage"),
			Default: tag.Get("default"), Secret: tag.Get("secret") == "true", Value: v.Field(i),
		})
	}
	return out
}

// setDefaults fills zero fields that have a default in their tag.
func setDefaults(c *Config) {
	for _, f := range c.Fields() {
		if f.Default != "" && f.Value.IsZero() {
			if err := f.set(f.Default); err != nil {
				panic("flood: invariant: the default of --" + f.Name + " parses: " + err.Error())
			}
		}
	}
}

func (f Field) set(s string) error {
	switch p := f.Value.Addr().Interface().(type) {
	case *string:
		*p = s
	case *[]string:
		*p = append(*p, s)
	case *bool:
		return assign(p, s, strconv.ParseBool)
	case *int:
		return assign(p, s, strconv.Atoi)
	case *uint64:
		return assign(p, s, func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) })
	case *time.Duration:
		return assign(p, s, time.ParseDuration)
	default:
		panic("flood: invariant: every Config field has a type that prints and parses")
	}
	return nil
}

func assign[T any](p *T, s string, parse func(string) (T, error)) error {
	v, err := parse(s)
	if err == nil {
		*p = v
	}
	return err
}

// texts gives the field's values as text; none if it is zero.
func (f Field) texts() []string {
	if f.Value.IsZero() {
		return nil
	}
	if list, ok := f.Value.Interface().([]string); ok {
		return list
	}
	return []string{fmt.Sprint(f.Value.Interface())}
}

// Text prints the configuration as lines of "flag = value", secrets masked.
// Fields left at their zero value are not printed.
func (c Config) Text() string {
	var b strings.Builder
	c = c.masked()
	for _, f := range c.Fields() {
		for _, v := range f.texts() {
			fmt.Fprintf(&b, "%s = %s\n", f.Name, strconv.Quote(v))
		}
	}
	return b.String()
}

// ParseConfig reads what Text printed.
func ParseConfig(text string) (Config, error) {
	var c Config
	byName := map[string]Field{}
	for _, f := range c.Fields() {
		byName[f.Name] = f
	}
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if line == "" {
			continue
		}
		name, quoted, ok := strings.Cut(line, " = ")
		f, known := byName[name]
		if !ok || !known {
			return c, fmt.Errorf("config line %d: %q is no setting", i+1, name)
		}
		value, err := strconv.Unquote(quoted)
		if err != nil {
			return c, fmt.Errorf("config line %d: %s: value is not quoted", i+1, name)
		}
		if err := f.set(value); err != nil {
			return c, fmt.Errorf("config line %d: %s: %w", i+1, name, err)
		}
	}
	return c, nil
}

// Command is the command line that repeats the run, secrets masked.
func (c Config) Command() string {
	c = c.masked()
	words := []string{"mcpflood", "run", quoteWord(c.URL)}
	for _, f := range c.Fields() {
		if f.Name == "url" || f.Name == "output" {
			continue
		}
		for _, v := range f.texts() {
			if f.Value.Kind() == reflect.Bool {
				words = append(words, "--"+f.Name)
				continue
			}
			words = append(words, "--"+f.Name, quoteWord(v))
		}
	}
	return strings.Join(words, " ")
}

// quoteWord quotes a word for a POSIX shell where it needs it.
func quoteWord(s string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=@%+,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !safe(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// masked is c without its secrets.
func (c Config) masked() Config {
	for _, f := range c.Fields() {
		if f.Secret && !f.Value.IsZero() {
			f.Value.SetString(Masked)
		}
	}
	c.URL, c.Metrics = Redact(c.URL), Redact(c.Metrics)
	headers := make([]string, len(c.Headers))
	for i, h := range c.Headers {
		headers[i] = h
		if secretHeader(headerName(h)) {
			headers[i] = headerName(h) + ": " + Masked
		}
	}
	if len(headers) > 0 {
		c.Headers = headers
	}
	return c
}

// headerName is the name in front of the colon; where that is missing, the first
// word: what follows may be a secret.
func headerName(h string) string {
	name, _, ok := strings.Cut(h, ":")
	if name = strings.TrimSpace(name); !ok {
		name, _, _ = strings.Cut(name, " ")
	}
	return name
}

// secretHeader tells headers whose values are never shown.
func secretHeader(name string) bool {
	n := strings.ToLower(name)
	return n == "authorization" || n == "proxy-authorization" || n == "cookie" || strings.Contains(n, "key") || strings.Contains(n, "token") || strings.Contains(n, "secret")
}

// Redact takes userinfo and query values out of a URL. What does not parse is
// masked whole.
func Redact(raw string) string {
	if raw == "" {
		return ""
	}
	u, err := url.Parse(raw)
	if err != nil || strings.Contains(u.Opaque, "@") { // user:password@host, without a scheme
		return Masked
	}
	if u.User != nil {
		u.User = url.User(Masked)
	}
	if u.RawQuery != "" {
		q := u.Query()
		keys := make([]string, 0, len(q))
		for k := range q {
			keys = append(keys, url.QueryEscape(k)+"="+Masked)
		}
		sort.Strings(keys)
		u.RawQuery = strings.Join(keys, "&")
	}
	return strings.ReplaceAll(u.String(), "%2A%2A%2A", Masked) // url escapes the mask
}
