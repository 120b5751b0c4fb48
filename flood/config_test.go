package flood

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mcpflood/mcpflood/results"
)

// drawConfig draws a value for every setting; URLs and headers are free of
// secrets, so that Text masks nothing.
func drawConfig(t *rapid.T) Config {
	var c Config
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", " ", "--x", "a = b", "it's", "line\nbreak", "\xff", `"`, "\x1b[2J"}))
	for _, f := range c.Fields() {
		if rapid.IntRange(0, 3).Draw(t, f.Name) == 0 {
			continue // left at its zero value
		}
		switch p := f.Value.Addr().Interface().(type) {
		case *string:
			*p = text.Draw(t, f.Name)
		case *[]string:
			*p = rapid.SliceOfN(text, 1, 3).Draw(t, f.Name)
		case *bool:
			*p = rapid.Bool().Draw(t, f.Name)
		case *int:
			*p = rapid.Int().Draw(t, f.Name)
		case *uint64:
			*p = rapid.Uint64().Draw(t, f.Name)
		case *time.Duration:
			*p = time.Duration(rapid.Int64().Draw(t, f.Name))
		default:
			t.Fatalf("--%s has a type this test does not know: %T", f.Name, p)
		}
	}
	c.Bearer, c.Headers = "", nil
	c.URL, c.Metrics = "http://127.0.0.1:3000/mcp", "https://localhost/metrics"
	return c
}

func TestConfigRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		got, err := ParseConfig(c.Text())
		if diff := cmp.Diff(c, got); err != nil || diff != "" {
			t.Fatalf("ParseConfig(%q): %v, (-want +got):\n%s", c.Text(), err, diff)
		}
	})
}

func TestParseConfigErrors(t *testing.T) {
	for text, want := range map[string]string{
		"nosuch = \"x\"\n":                   `config line 1: "nosuch" is no setting`,
		"url = \"x\"\ntool\n":                `config line 2: "tool" is no setting`,
		"tool = x\n":                         "config line 1: tool: value is not quoted",
		"calls = \"many\"\n":                 "config line 1: calls: ",
		"tool = \"x\"\n\nduration = \"1 s\"": "config line 3: duration: ",
	} {
		if _, err := ParseConfig(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseConfig(%q) = %v, want %q", text, err, want)
		}
	}
	if c, err := ParseConfig(""); err != nil || !reflect.DeepEqual(c, Config{}) {
		t.Errorf("ParseConfig of nothing = %+v, %v, want the zero Config", c, err)
	}
}

func TestDefaults(t *testing.T) {
	want := Config{
		Protocol: "auto", HTTP: "1.1", Streams: 10, Duration: 30 * time.Second, Cuts: []string{"fin@part(0.1,0.9):50%"},
		Backoff: "full-jitter(100ms,5s)", MetricsInterval: time.Second, Clean: 3, Watch: 15 * time.Second, ConnectTimeout: 10 * time.Second, Currency: "USD",
	}
	if diff := cmp.Diff(want, Config{}.withDefaults()); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	for _, tt := range []struct {
		name string
		c    Config
		ok   func(Config) bool
	}{
		{"a rate holds no streams", Config{Rate: "5/s"}, func(c Config) bool { return c.Streams == 0 }},
		{"calls need no duration", Config{Calls: 7}, func(c Config) bool { return c.Duration == 0 }},
		{"no cuts", Config{Cuts: []string{"none"}}, func(c Config) bool { return len(c.Cuts) == 0 }},
		{"what is given stays", Config{Clean: 9, Watch: time.Minute, Cuts: []string{"reset@mid"}}, func(c Config) bool {
			return c.Clean == 9 && c.Watch == time.Minute && c.Cuts[0] == "reset@mid"
		}},
	} {
		if got := tt.c.withDefaults(); !tt.ok(got) {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
	// A run directory is a recipe: what the defaults filled in says the same.
	c := Config{URL: "http://127.0.0.1:1/", Tool: "t"}
	if got, err := ParseConfig(c.withDefaults().Text()); err != nil || got.Validate() != nil || c.Validate() != nil {
		t.Errorf("the defaults are no valid configuration: %v, %v", err, got.Validate())
	}
}

// broken has every problem that Validate knows, all at once.
var broken = Config{
	URL: "ftp://host/x", Args: []string{"noequals", "a={{.Nope}}", "b={{.Attempt}}"}, ArgsJSON: `{"x":"{{.Nix}}"}`,
	Headers: []string{"nocolon", "Bad Name: x", "X-A: a\x01b", "Authorization: x", "Content-Length: 3", "X-B: {{.What}}"}, Bearer: "b",
	Protocol: "2025-11-25", HTTP: "2",
	Rate: "fast", Streams: -1, Calls: -2, MaxStreams: 2_000_000, Ramp: time.Minute, Duration: time.Second, Reissue: -1, Clean: -3,
	Cuts: []string{"fin@never", "notify@mid", "fin@mid:80%", "fin@sent:80%"}, TailDelay: -1, Backoff: "sometimes",
	Metrics: "", Metric: []string{"work=x"}, MetricsInterval: -1, Log: []string{"f"},
	StopWithin: time.Minute, NoticeWithin: -1, Watch: time.Second, Drain: -1, Timeout: -1, ConnectTimeout: -1,
	Thresholds: []string{"mcp_nothing: count==0", "mcp_ran_on: often"}, Prices: []string{"step", "step=x", "token=-1"}, PriceTable: "",
}

func TestValidateReportsAll(t *testing.T) {
	err := broken.Validate()
	if err == nil {
		t.Fatal("no problem at all")
	}
	for _, want := range []string{
		`bad target "ftp://host/x"`, "no tool: give --tool NAME", `bad --arg "noequals"`, "--arg a: unknown placeholder {{.Nope}}",
		"--arg b: {{.Attempt}} is for headers only", "--args-json: unknown placeholder {{.Nix}}", "--arg and --args-json exclude",
		`bad --header "nocolon"`, `header name "Bad Name"`, "header X-A: its value has a control character", "--bearer and --header Authorization exclude",
		"header Content-Length: the connection sets it", "--header X-B: unknown placeholder {{.What}}", "--protocol 2025-11-25", "--http 2",
		`bad rate "fast"`, "--streams -1", "--calls -2", "--max-streams: want at most", "--ramp 1m0s is longer than --duration 1s", "--reissue -1", "--clean -3",
		`bad cut "fin@never"`, "style notify needs a stdio server", "shares add up to", "--tail-delay -1ns", `bad backoff "sometimes"`,
		"--metric needs --metrics URL", "--metrics-interval -1ns", "--log without a pattern",
		"--watch 1s is not longer than --stop-within 1m0s", "--notice-within -1ns", "--drain -1ns", "--timeout -1ns", "--connect-timeout -1ns",
		"mcp_nothing", "mcp_ran_on", `bad --price "step"`, `bad --price "step=x"`, "price of token is -1",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the problem %q is not reported in:\n%v", want, err)
		}
	}
	if again := broken.Validate(); again.Error() != err.Error() {
		t.Errorf("twice the same problems in another order:\n%v\n%v", err, again)
	}
}

func TestValidateOne(t *testing.T) {
	good := func(change func(*Config)) error {
		c := Config{URL: "http://127.0.0.1:3000/mcp", Tool: "t"}
		change(&c)
		return c.Validate()
	}
	for _, tt := range []struct {
		name   string
		change func(*Config)
		want   string // empty: fine
	}{
		{"the least", func(c *Config) {}, ""},
		{"https", func(c *Config) { c.URL = "https://example.com" }, ""},
		{"no URL", func(c *Config) { c.URL = "" }, "no target"},
		{"no scheme", func(c *Config) { c.URL = "localhost:3000/mcp" }, `bad target "localhost:3000/mcp"`},
		{"no host", func(c *Config) { c.URL = "http:///mcp" }, "bad target"},
		{"userinfo", func(c *Config) { c.URL = "http://alice:s3cret@127.0.0.1/mcp" }, "use --bearer"},
		{"userinfo, no scheme", func(c *Config) { c.URL = "alice:s3cret@127.0.0.1/mcp" }, "bad target"},
		{"secret query, bad scheme", func(c *Config) { c.URL = "ftp://h/?token=s3cret" }, "bad target"},
		{"bad port", func(c *Config) { c.URL = "http://127.0.0.1:99999/mcp" }, "port"},
		{"a header that lacks its colon", func(c *Config) { c.Headers = []string{"Authorization Bearer s3cret"} }, `bad --header "Authorization"`},
		{"a bearer from a file with its line end", func(c *Config) { c.Bearer = "s3cret\n" }, "header Authorization: its value has a control character"},
		{"one of two log patterns", func(c *Config) { c.Log, c.LogStop = []string{"-"}, []string{"x"} }, ""},
		{"patterns without a log", func(c *Config) { c.LogEffect = []string{"x"} }, "need --log"},
		{"metrics without a metric", func(c *Config) { c.Metrics = "http://h/m" }, "add --metric"},
		{"stop-within past the default watch", func(c *Config) { c.StopWithin = time.Minute }, "--watch 15s is not longer"},
		{"none among cuts", func(c *Config) { c.Cuts = []string{"none", "fin@mid"} }, `bad cut "none"`},
		{"a price table that is not there", func(c *Config) { c.PriceTable = "/nowhere/prices.json" }, "--price-table"},
		{"rate and streams", func(c *Config) { c.Rate, c.Streams = "5/s", 5 }, "exclude each other"},
		{"ramp longer than the default duration", func(c *Config) { c.Ramp = time.Hour }, "--ramp"},
		{"ramp with calls", func(c *Config) { c.Ramp, c.Calls = time.Hour, 5 }, ""},
	} {
		err := good(tt.change)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: Validate = %v, want %q", tt.name, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the error shows a secret: %v", tt.name, err)
		}
	}
}

func TestParseRate(t *testing.T) {
	for s, want := range map[string]float64{"50/s": 50, "50": 50, "0.5": 0.5, "300/m": 5, "7200/h": 2, "1e3/s": 1000} {
		if got, err := ParseRate(s); err != nil || got != want {
			t.Errorf("ParseRate(%q) = %v, %v, want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "0", "-1/s", "/s", "50/", "50/d", "50/s/s", "x", "NaN", "inf", "1e400", "1e9/s", "NaN/s", "5 /s"} {
		if got, err := ParseRate(s); err == nil {
			t.Errorf("ParseRate(%q) = %v, want an error", s, got)
		}
	}
}

func TestRedact(t *testing.T) {
	for raw, want := range map[string]string{
		"":                                  "",
		"http://127.0.0.1:3000/mcp":         "http://127.0.0.1:3000/mcp",
		"http://h/a%20b?":                   "http://h/a%20b?",
		"https://alice:pw@h/mcp":            "https://***@h/mcp",
		"https://alice@h/mcp":               "https://***@h/mcp",
		"http://h/mcp?token=abc&b=1&b=2":    "http://h/mcp?b=***&token=***",
		"http://h/mcp?abc":                  "http://h/mcp?abc=***",
		"http://u:p@h/?k=v":                 "http://***@h/?k=***",
		"http://h/%zz?token=abc":            "***",
		"alice:pw@h/mcp":                    "***",
		"localhost:3000/mcp":                "localhost:3000/mcp",
		"http://[::1]:3000/mcp?key=a%26b=c": "http://[::1]:3000/mcp?key=***",
	} {
		if got := Redact(raw); got != want {
			t.Errorf("Redact(%q) = %q, want %q", raw, got, want)
		}
	}
}

// TestSecrets holds that no secret leaves by Text or Command, whatever else the
// configuration holds.
func TestSecrets(t *testing.T) {
	const secret = "s3cr3t-0f-the-user"
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		c.Bearer = secret
		c.URL = "https://user:" + secret + "@host/mcp?api=" + secret + "&x=" + secret
		c.Metrics = "http://host/metrics?" + secret + "x=" + secret
		c.Metrics = "http://" + secret + "@host/metrics?q=" + secret
		for _, name := range []string{"Authorization", "authorization", "Proxy-Authorization", "Cookie", "X-API-Key", "apikey", "X-Auth-Token", "Client-Secret"} {
			c.Headers = append(c.Headers, name+": "+secret, name+":"+secret)
		}
		c.Headers = append(c.Headers, "Authorization "+secret, "X-Team: blue")
		for what, text := range map[string]string{"Text": c.Text(), "Command": c.Command()} {
			if strings.Contains(text, secret) {
				t.Fatalf("%s shows a secret:\n%s", what, text)
			}
			if !strings.Contains(text, "X-Team: blue") {
				t.Fatalf("%s does not show what is no secret:\n%s", what, text)
			}
		}
		if c.Bearer != secret || !strings.Contains(c.Headers[0], secret) {
			t.Fatalf("Text changed the configuration")
		}
	})
}

func TestSecretTexts(t *testing.T) {
	c := Config{Bearer: "b1", Headers: []string{"Authorization: Basic dXNlcg==", "X-Api-Key:  k1 ", "X-Team: blue", "Cookie: a=1; b=2", "X-Token:", "broken"}}
	want := []string{"b1", "Basic dXNlcg==", "dXNlcg==", "k1", "a=1; b=2"}
	if diff := cmp.Diff(want, c.secrets()); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
}

// TestCommand holds that a shell reads from the command line the words that
// were meant.
func TestCommand(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh")
	}
	c := Config{
		URL: "http://127.0.0.1:3000/mcp?a=1", Tool: "it's; a $(tool)", Args: []string{"month=2026-09", "q=a \"b\" `c` *"}, Insecure: true,
		Duration: 90 * time.Second, Seed: 7, Log: []string{"-"}, LogWork: []string{`step (\d+)\s`}, Bearer: "b", Dir: "out", Headers: []string{"X: "},
	}
	out, err := exec.Command(shell, "-c", `mcpflood() { printf '%s\n' "$@"; }; `+c.Command()).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"run", "http://127.0.0.1:3000/mcp?a=***", "--tool", c.Tool, "--arg", c.Args[0], "--arg", c.Args[1], "--header", "X: ", "--bearer", "***", "--insecure",
		"--duration", "1m30s", "--seed", "7", "--log", "-", "--log-work", c.LogWork[0]}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")); diff != "" {
		t.Errorf("words of %s (-want +got):\n%s", c.Command(), diff)
	}
}

func TestPrices(t *testing.T) {
	table := filepath.Join(t.TempDir(), "prices.json")
	write := func(s string) {
		if err := os.WriteFile(table, []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"currency": "EUR", "prices": {"step": 0.5, "token": 0.001}}`)
	got, err := Config{PriceTable: table, Prices: []string{"step=0.002", "call=0"}}.withDefaults().prices()
	want := results.Prices{Currency: "EUR", PerUnit: map[string]float64{"step": 0.002, "token": 0.001, "call": 0}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("prices: %v (-want +got):\n%s", err, diff)
	}
	if got, err := (Config{}).withDefaults().prices(); err != nil || got.Currency != "USD" || len(got.PerUnit) != 0 {
		t.Errorf("no prices = %+v, %v, want none in USD", got, err)
	}
	for text, want := range map[string]string{
		`{"prices": {"step": -1}}`:     "price of step is -1",
		`{"prices": {"step": "dear"}}`: "--price-table",
		`{"prices"`:                    "--price-table",
	} {
		write(text)
		if _, err := (Config{PriceTable: table}).prices(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("price table %s: %v, want %q", text, err, want)
		}
	}
	for _, kv := range []string{"step", "=1", "step=", "step=a", "step=NaN", "step=inf", "step=-0.1"} {
		if _, err := (Config{Prices: []string{kv}}).prices(); err == nil {
			t.Errorf("--price %s: no error", kv)
		}
	}
}

// TestFields holds that every setting can be offered as a flag.
func TestFields(t *testing.T) {
	var c Config
	seen := map[string]bool{}
	for _, f := range c.Fields() {
		if f.Name == "" || seen[f.Name] {
			t.Errorf("setting %q: no name of its own", f.Name)
		}
		seen[f.Name] = true
		if f.Name != "url" && (f.Group == "" || f.Usage == "") {
			t.Errorf("--%s: group %q, usage %q", f.Name, f.Group, f.Usage)
		}
		if f.Default != "" && !strings.Contains(fmt.Sprint(c.withDefaults()), f.Default) {
			t.Errorf("--%s: the default %s is not what is filled in", f.Name, f.Default)
		}
	}
}
