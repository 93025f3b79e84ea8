package config_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/demo"
	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/app/outputs"
)

var kinds = agent.Kinds{
	demo.Kind(),
	{
		Name: "remote", Target: "URL", Options: []agent.Option{{Name: "key", Secret: true}, {Name: "model"}},
		New: func(agent.Spec) (agent.Agent, error) { return nil, errors.New("not in tests") },
	},
}

func env(vars ...string) func(string) (string, bool) {
	m := map[string]string{"HOME": "/home/me", "LocalAppData": `C:\me`}
	for i := 0; i < len(vars); i += 2 {
		m[vars[i]] = vars[i+1]
	}
	return func(k string) (string, bool) { v, ok := m[k]; return v, ok }
}

func getenv(k string) string { v, _ := env()(k); return v }

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "leat.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoad(t *testing.T) {
	path := write(t, `
listen: [127.0.0.1:1, "[::1]:2"]
data: /from/file
token: t0ken
agents:
  one: {kind: demo, speed: 1.50, silence: 0}
  two:
    kind: remote
    target: https://example.com/?a=b
    key: s3cret
    silence: 90s
    description: Knows the servers.
    suggestions:
      - "Is the backup done?"
      - 2 + 2
silence: 5m
drain: 2s
trace_retention: 7d
sync: normal
limits: {message: 1MiB, queued: 3}
log: {level: debug}
`)
	c, err := config.Load(path, env("LEAT_DATA", "/from/env", "LEAT_LIMITS_QUEUED", "4", "LEAT_HOSTS", "a.example, b.example,"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check(kinds, getenv); err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	want.Listen = []string{"127.0.0.1:1", "[::1]:2"}
	want.Data, want.Token = "/from/env", "t0ken"
	want.Agents = config.Agents{
		{Name: "one", Kind: "demo", Options: map[string]string{"speed": "1.50"}, Silence: -1},
		{Name: "two", Kind: "remote", Target: "https://example.com/?a=b", Options: map[string]string{"key": "s3cret"}, Silence: 90 * time.Second, Description: "Knows the servers.", Suggestions: []string{"Is the backup done?", "2 + 2"}},
	}
	want.DefaultAgent = "one"
	want.Silence, want.Drain, want.TraceRetention = config.Duration(5*time.Minute), config.Duration(2*time.Second), config.Duration(7*24*time.Hour)
	want.Sync, want.Hosts, want.Log.Level = "normal", []string{"a.example", "b.example"}, "debug"
	want.Limits.Message, want.Limits.Queued = 1<<20, 4
	if d := cmp.Diff(want, c, cmpopts.IgnoreUnexported(config.Config{})); d != "" {
		t.Error(d)
	}
	if got := c.SilenceOf(c.Agents[0]); got >= 0 {
		t.Errorf("no limit was asked for, got %v", got)
	}
	if got := c.SilenceOf(agent.Spec{}); got != 5*time.Minute {
		t.Errorf("the configured limit was asked for, got %v", got)
	}
}

// The printed configuration can be read again and is equal to the original except for secrets.
func TestPrint(t *testing.T) {
	c, err := config.Load(write(t, "token: t0ken\nusers: {secret: s3cret-that-is-long-enough-for-hs256}\nagents:\n  two: {kind: remote, target: \"x: y\", key: s3cret, model: \"1.50\"}\n"), env())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check(kinds, getenv); err != nil {
		t.Fatal(err)
	}
	for name, print := range map[string]func(agent.Kinds) ([]byte, error){"yaml": c.YAML, "json": c.JSON} {
		b, err := print(kinds)
		if err != nil {
			t.Fatal(err)
		}
		if s := string(b); strings.Contains(s, "t0ken") || strings.Contains(s, "s3cret") || strings.Count(s, "***") != 3 {
			t.Errorf("%s shows a secret:\n%s", name, s)
		}
		again, err := config.Load(write(t, string(b)), env())
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, b)
		}
		want := c
		want.Token, want.Users.Secret = "***", "***"
		want.Agents = config.Agents{c.Agents[0]}
		want.Agents[0].Options = map[string]string{"key": "***", "model": "1.50"}
		if d := cmp.Diff(want, again, emptyIsNil, cmpopts.IgnoreUnexported(config.Config{})); d != "" {
			t.Errorf("%s: %s\n%s", name, d, b)
		}
	}
}

// All errors of a file are reported at once, each with its line; so are those of variables and of checks, with where the value is from.
func TestErrorsAtOnce(t *testing.T) {
	path := write(t, "listne: []\nlimits:\n  histroy: 3\n  queued: many\ndrain: soon\n")
	_, err := config.Load(path, env())
	want := []string{
		path + ":1: listne: unknown key; did you mean listen?", path + ":3: limits.histroy: unknown key; did you mean history?",
		path + `:4: limits.queued: "many" must be a whole number`, path + `:5: drain: invalid duration "soon"; use 30s, 10m, 24h or 30d`,
	}
	if d := cmp.Diff(strings.Join(want, "\n"), fmt.Sprint(err)); d != "" {
		t.Error(d)
	}
	_, err = config.Load("", env("LEAT_DRAIN", "soon", "LEAT_LEASE", "later"))
	if d := cmp.Diff("LEAT_LEASE: lease: invalid duration \"later\"; use 30s, 10m, 24h or 30d\nLEAT_DRAIN: drain: invalid duration \"soon\"; use 30s, 10m, 24h or 30d", fmt.Sprint(err)); d != "" {
		t.Error(d)
	}
	path = write(t, "data: x\nlog: {level: loud, format: xml}\n")
	c, err := config.Load(path, env("LEAT_LOG_FORMAT", "svg", "LEAT_SYNC", "never"))
	if err != nil {
		t.Fatal(err)
	}
	c.DefaultAgent = "none"
	c.SetSource("default_agent", "--default-agent")
	got := fmt.Sprint(c.Check(kinds, getenv))
	for _, want := range []string{path + ":2: log.level: ", "LEAT_LOG_FORMAT: log.format: ", "LEAT_SYNC: sync: ", "--default-agent: default_agent: "} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
}

// An empty list is equal to a missing one.
var emptyIsNil = cmp.Transformer("empty", func(l []string) []string { return append([]string{}, l...) })

func TestFileRefused(t *testing.T) {
	for text, want := range map[string]string{
		"listne: [x]":                        "leat.yaml:1: listne: unknown key; did you mean listen?",
		"limits: {messages: 1MiB}":           "limits.messages: unknown key; did you mean message?",
		"data: x\nconnections: 1":            "leat.yaml:2: connections: unknown key; did you mean limits.connections?",
		"elephants: 1":                       "elephants: unknown key; leat.example.yaml lists all keys",
		"data: a\ndata: b":                   "already defined",
		"data: a\n---\ndata: b":              "more than one document",
		"drain: 30":                          "invalid duration",
		"drain: -1s":                         "invalid duration",
		"limits: {message: many}":            "invalid size",
		"limits: {queued: many}":             `leat.yaml:1: limits.queued: "many" must be a whole number`,
		"record: {enabled: perhaps}":         `record.enabled: "perhaps" must be true or false`,
		"token: [s3cret]":                    "token: must be a single value",
		"listen: {a: b}":                     "listen: must be a list",
		"limits: [x]":                        "limits: expected a mapping (key: value), got a list",
		"agents: [demo]":                     "expected a mapping",
		"agents: {a: demo}":                  "expected a mapping",
		"agents: {a: {kind: [x]}}":           "expected a single value",
		"agents: {a: {kind: demo, kind: x}}": "already defined",
		"agents: {a: {kind: demo, suggestions: [a, b, c, d, e]}}": "agents: a: suggestions: 5 suggestions; at most 4",
		"agents: {a: {kind: demo, suggestions: [\"a\\nb\"]}}":     "agents: a: suggestions: \"a\\nb\" has several lines; use one",
		"agents: {a: {kind: demo, suggestions: [[a]]}}":           "agents: a: suggestions: expected a single value",
		"agents: {a: {kind: demo, description: \"a\\nb\"}}":       "agents: a: description: invalid text",
		"agents: {a: {kind: demo, silence: soon}}":                "silence: invalid duration \"soon\"",
		"data: [": "",
	} {
		_, err := config.Load(write(t, text), env())
		if !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), "leat.yaml") {
			t.Errorf("%q: the error does not name the file: %v", text, err)
		}
	}
	if _, err := config.Load(filepath.Join(t.TempDir(), "none.yaml"), env()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	for _, text := range []string{"", "# nothing\n", "---\n"} {
		if _, err := config.Load(write(t, text), env()); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestCheck(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "",
		"listen: []":                          "listen: needs at least one address",
		"listen: [\":31337\"]":                "listen: \":31337\" is reachable from other machines, and no token is set",
		"listen: [\"0.0.0.0:1\"]":             "is reachable from other machines",
		"listen: [example.com:1]":             "is reachable from other machines",
		"listen: [localhost:1, \"[::1]:2\"]":  "",
		"listen: [\"0.0.0.0:1\"]\ntoken: x":   "",
		"listen: [127.0.0.1]":                 "invalid address",
		"listen: [127.0.0.1:99999]":           "is not a port",
		"token: \"a b\"":                      "token: must be printable",
		"allowed_origins: [example.com]":      "invalid origin",
		"allowed_origins: [https://a.b/c]":    "invalid origin",
		"allowed_origins: [https://a.b:8080]": "",
		"hosts: [\"*\"]":                      "requires a token",

		"hosts: [\"*\"]\nallowed_origins: [\"*\"]\ntoken: x": "",
		"hosts: [https://a.b]":                               "invalid host",
		"listen: [\"unix:/run/leat.sock\"]":                  "",
		"listen: [\"unix:\"]":                                "has no path of a socket",
		"public_url: https://a.b\ntoken: x":                  "",
		"public_url: http://localhost:80/leat/":              "",
		"public_url: https://a.b":                            "public_url: https://a.b is reachable from other machines, and no token is set",
		"public_url: a.b\ntoken: x":                          "invalid URL",
		"public_url: https://u:p@a.b\ntoken: x":              "invalid URL",
		"public_url: https://a.b/?x\ntoken: x":               "invalid URL",
		"public_url: https://a.b/x y\ntoken: x":              "its path may contain",
		"public_url: https://a.b/../x\ntoken: x":             "its path may contain",
		"base_path: /leat/":                                  "",
		"base_path: /":                                       "",
		"base_path: leat":                                    "base_path: invalid path \"leat\"; write it as /leat",
		"base_path: //leat":                                  "write it as /leat",
		"base_path: /a/..":                                   "write it as /leat",
		"trusted_proxies: [127.0.0.1, 10.1.2.3/8, \"::1\"]":  "",
		"trusted_proxies: [proxy]":                           "trusted_proxies: invalid network \"proxy\"",
		"trusted_proxies: [0.0.0.0/0]":                       "contains all addresses",
		"trusted_proxies: [\"::ffff:10.0.0.0/104\"]":         "write an IPv4 network in IPv4 notation",
		"tls: {cert: x}":                                     "tls: cert and key must be set together",
		"agents: {a: {kind: x}}":                             `unknown kind "x"; use one of demo, remote`,
		"agents: {a: {}}":                                    "kind is missing",
		"agents: {a: {kind: demo, sped: 2}}":                 `no option "sped"`,
		"agents: {a: {kind: remote}}":                        "needs a target: remote:URL",
		"agents: {a b: {kind: demo}}":                        "letters, digits",
		"default_agent: x":                                   `there is no agent "x"`,
		"sync: fast":                                         "use full or normal",
		"log: {format: xml}":                                 "use auto, text or json",
		"log: {level: loud}":                                 "debug, info, warn or error",
		"limits: {queued: -1}":                               "limits.queued: must be greater than 0",
		"lease: 0":                                           "lease: must be greater than 0",
		"drain: 0":                                           "",
		"voice: {interrupt: never}":                          `voice.interrupt: unknown value "never"; use turn or speech`,
		"voice: {speech: {engine: off}}":                     "",
		"voice: {speech: {engine: maven}}":                   `voice.speech.engine: unknown engine "maven"; use espeak-ng, openai`,
		"voice: {recognition: {engine: whisper}}":            `voice.recognition.engine: unknown engine "whisper"; use openai`,
		"voice: {speech: {key: a, key_env: B}}":              "voice.speech: key, key_env and key_file are different ways",
		"voice: {recognition: {key: a, key_file: b}}":        "voice.recognition: key, key_env and key_file are different ways",
		"listen: []\nsync: x\ndefault_agent: y":              "sync",
	} {
		c, err := config.Load(write(t, text), env())
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		err = c.Check(kinds, getenv)
		if want == "" {
			if err != nil {
				t.Errorf("%q: %v", text, err)
			}
			continue
		}
		if !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	two := config.Default()
	two.Agents = config.Agents{{Name: "a", Kind: "demo"}, {Name: "a", Kind: "demo"}}
	if err := two.Check(kinds, getenv); err == nil || !strings.Contains(err.Error(), `two agents have the name "a"`) {
		t.Errorf("duplicate name: %v", err)
	}
}

func TestDataDir(t *testing.T) {
	c := config.Default()
	if err := c.Check(kinds, getenv); err != nil || !filepath.IsAbs(c.Data) {
		t.Errorf("%q, %v", c.Data, err)
	}
	c = config.Default()
	if err := c.Check(kinds, func(string) string { return "" }); err == nil || !strings.Contains(err.Error(), "no home folder") {
		t.Errorf("without a home folder: %v", err)
	}
}

// Every key can be set by its environment variable.
func TestEnvironment(t *testing.T) {
	values := map[string]string{
		"listen": "127.0.0.1:5,[::1]:6", "data": "/d", "token": "t", "allowed_origins": "https://a.b", "app_origins": "true", "hosts": "a.b",
		"agents": "demo x=remote:y?key=k", "default_agent": "x", "silence": "1s", "turn_limit": "90m", "wait_limit": "2s", "lease": "3s", "drain": "4s",
		"sync": "normal", "trace_retention": "5d", "limits.message": "6KiB", "limits.queued": "7", "limits.history": "8", "limits.history_bytes": "9KiB",
		"webhooks": "[{name: a}]", "limits.connections": "9", "limits.file": "1MiB", "public_url": "https://a.b", "base_path": "/a", "trusted_proxies": "::1,10.0.0.0/8", "tls.cert": "c", "tls.key": "k", "log.level": "warn", "log.format": "json", "log.content": "true",
		"users.secret": "s", "users.secret_file": "/s", "users.key_file": "/k", "users.jwks": "https://a.b/c", "users.issuer": "i",
		"users.audience": "a,b", "users.subject_claim": "user.id", "users.tenant_claim": "t", "users.scopes_claim": "scope", "users.admin_scope": "true", "eliza.query_token": "1", "eliza.emotes": "/e", "files.workspace": "/w",
		"limits.user.turns": "10", "limits.user.messages": "11", "limits.user.bytes": "12MiB", "limits.user.viewers": "13",
		"limits.tenant.turns": "14", "limits.tenant.messages": "15", "limits.tenant.bytes": "16GiB", "limits.tenant.viewers": "17",
	}
	maps.Copy(values, map[string]string{"terminal.enabled": "true", "terminal.token": "s", "terminal.max_duration": "6s", "terminal.concurrent": "3"})
	maps.Copy(values, map[string]string{
		"voice.interrupt": "speech", "voice.vad": "/v", "voice.speech.engine": "openai", "voice.speech.url": "http://a", "voice.speech.key": "k", "voice.speech.key_env": "K",
		"voice.speech.key_file": "/k", "voice.speech.model": "m", "voice.speech.voice": "v", "voice.speech.language": "de", "voice.recognition.engine": "openai",
		"voice.recognition.url": "http://a", "voice.recognition.key": "k", "voice.recognition.key_env": "K", "voice.recognition.key_file": "/k",
		"voice.recognition.model": "m", "voice.recognition.language": "de",
	})
	maps.Copy(values, map[string]string{"outputs.durable_streams_store": "true", "outputs.durable_streams_wait": "9s", "outputs.openclaw_ui": "/ui"})
	for _, o := range outputs.List(outputs.Options{}) {
		if o.Name != "" {
			values["outputs."+o.Name] = strconv.FormatBool(!o.Default)
		}
	}
	maps.Copy(values, map[string]string{"record.enabled": "false", "record.keep": "1h", "record.size": "2MiB"})
	maps.Copy(values, map[string]string{"plugins.enabled": "true", "plugins.env": "A,B", "plugins.allow_private": "true", "channels": "telegram?allow=1%2C2 b=telegram"})
	maps.Copy(values, map[string]string{"retention.default": "90d", "retention.agents": "demo=30d x=0", "audit_retention": "0", "usage_retention": "30d", "prices": "{a: {input: 1, output: 2}}"})
	def := config.Default()
	seen := map[string]bool{}
	for _, k := range def.Keys() {
		v, ok := values[k.Path]
		if !ok {
			t.Fatalf("key %s has no value in this test", k.Path)
		}
		for _, name := range k.Env {
			if seen[name] {
				t.Errorf("%s sets two keys", name)
			}
			seen[name] = true
			c, err := config.Load("", env(name, v))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if cmp.Equal(c, def, cmpopts.IgnoreUnexported(config.Config{})) {
				t.Errorf("%s=%s changes nothing", name, v)
			}
		}
		delete(values, k.Path)
	}
	if len(values) > 0 {
		t.Errorf("keys that no longer exist: %v", slices.Sorted(maps.Keys(values)))
	}
	if !seen["LEAT_API_TOKEN"] || !seen["ELIZA_API_TOKEN"] || !seen["LEAT_LOG_LEVEL"] {
		t.Errorf("names: %v", slices.Sorted(maps.Keys(seen)))
	}
}

func TestElizaEnvironment(t *testing.T) {
	tests := []struct {
		vars []string
		want string
	}{
		{nil, "127.0.0.1:31337"},
		{[]string{"ELIZA_API_PORT", "4000"}, "127.0.0.1:4000"},
		{[]string{"ELIZA_PORT", "2138"}, "127.0.0.1:2138"},
		{[]string{"ELIZA_PORT", "2138", "ELIZA_API_PORT", "31337"}, "127.0.0.1:2138 127.0.0.1:31337"},
		{[]string{"ELIZA_API_PORT", "31337", "ELIZA_GATEWAY_PORT", "18789"}, "127.0.0.1:18789 127.0.0.1:31337"},
		{[]string{"ELIZA_PORT", "2138", "ELIZA_API_PORT", "2138"}, "127.0.0.1:2138"},
		{[]string{"ELIZA_PORT", "2138", "LEAT_LISTEN", "127.0.0.1:9"}, "127.0.0.1:9"},
		{[]string{"ELIZA_PORT", ""}, "127.0.0.1:31337"},
	}
	for _, tt := range tests {
		c, err := config.Load("", env(tt.vars...))
		if got := strings.Join(c.Listen, " "); err != nil || got != tt.want {
			t.Errorf("%v: %s, %v", tt.vars, got, err)
		}
	}
	if c, err := config.Load("", env("ELIZA_API_TOKEN", "e", "LEAT_API_TOKEN", "l")); err != nil || c.Token != "l" {
		t.Errorf("token %q, %v", c.Token, err)
	}
	for _, v := range []string{"0", "x", "70000", "-1"} {
		if _, err := config.Load("", env("ELIZA_PORT", v)); !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), "ELIZA_PORT") {
			t.Errorf("%q: %v", v, err)
		}
	}
	if _, err := config.Load("", env("LEAT_DRAIN", "x")); err == nil || !strings.Contains(err.Error(), "LEAT_DRAIN") {
		t.Errorf("the error does not name the variable: %v", err)
	}
}

// The path prefix is the path of the public URL unless base_path is set.
func TestBase(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "",
		"base_path: /leat/":             "/leat",
		"public_url: https://a.b/leat/": "/leat",
		"public_url: https://a.b/":      "",
		"public_url: https://a.b/leat\nbase_path: /":  "",
		"public_url: https://a.b/leat\nbase_path: /x": "/x",
	} {
		c, err := config.Load(write(t, text), env())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.Base(); got != want || err != nil {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}
