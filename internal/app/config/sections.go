package config

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/app/outputs"
	"github.com/leat-dev/leat/internal/base/process"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/service/terminal"
	"github.com/leat-dev/leat/internal/service/webhook"
)

// Terminal configures shell commands on this machine through the API. A command has all rights of the gateway's user,
// so the terminal is disabled by default and has a separate token.
type Terminal struct {
	Enabled     bool     `yaml:"enabled"`
	Token       string   `yaml:"token" env:"LEAT_TERMINAL_TOKEN ELIZA_TERMINAL_RUN_TOKEN"`
	MaxDuration Duration `yaml:"max_duration"`
	Concurrent  int      `yaml:"concurrent"`
}

// minTerminalToken is the minimum length of the terminal's token in bytes. The token gives access to a shell, so it must not be guessable.
const minTerminalToken = 16

// check requires a token that is long and differs from the API token. The limits are checked also if the terminal is
// disabled, so that enabling it later finds them valid.
func (t *Terminal) check(api string, bad reporter) {
	switch {
	case t.Enabled && t.Token == "":
		bad("terminal.token", "the terminal needs a separate token; generate one with openssl rand -hex 32")
	case t.Token != "" && len(t.Token) < minTerminalToken:
		bad("terminal.token", "has %d bytes, at least %d are required; generate one with openssl rand -hex 32", len(t.Token), minTerminalToken)
	case t.Token != "" && t.Token == api:
		bad("terminal.token", "must differ from the API token, whose holders must not get a shell")
	case !printable(t.Token):
		bad("terminal.token", "must be printable ASCII without spaces, because it is sent in a header")
	}
	if d := time.Duration(t.MaxDuration); d < time.Millisecond || d > terminal.MaxMaxDuration {
		bad("terminal.max_duration", "%s must be greater than 0 and at most %s", d, terminal.MaxMaxDuration)
	}
	if t.Concurrent < 1 || t.Concurrent > terminal.MaxMaxRuns {
		bad("terminal.concurrent", "%d must be from 1 to %d", t.Concurrent, terminal.MaxMaxRuns)
	}
}

// Files configures files that people and agents exchange.
type Files struct {
	// Workspace is a folder that the gateway shares with its agents. If it is empty, none is shared.
	Workspace string `yaml:"workspace"`
}

// check refuses workspaces that would be dangerous. Agents can read and write everything in the workspace, so it must
// neither contain the data folder, which has the conversations of all users, nor be inside it, nor be a whole disk.
// Control characters would end up in the prompts of agents that get the paths.
func (f *Files) check(data string, bad reporter) {
	if f.Workspace == "" {
		return
	}
	const key = "files.workspace"
	dir := filepath.Clean(f.Workspace)
	// within reports whether dir is inside of, or equal to it. It compares paths only; links are not resolved.
	within := func(dir, of string) bool {
		rel, err := filepath.Rel(of, dir)
		return err == nil && filepath.IsLocal(rel)
	}
	switch data, err := filepath.Abs(data); {
	case !filepath.IsAbs(dir):
		bad(key, "%q must be an absolute path, because agents get the paths of its files", f.Workspace)
	case filepath.Dir(dir) == dir:
		bad(key, "%q is the root of the disk; use a separate folder", f.Workspace)
	case strings.ContainsFunc(dir, func(r rune) bool { return r < ' ' || r == 0x7f }):
		bad(key, "%q contains control characters", f.Workspace)
	case err == nil && (within(dir, data) || within(data, dir)):
		bad(key, "%q must not contain the data folder (%s) or be inside it, because agents can read the workspace", f.Workspace, data)
	}
}

// Outputs says for which clients of other protocols the gateway has routes.
type Outputs struct {
	// Switches has a key for each output of [outputs.List] with a name: whether it is on.
	Switches map[string]*bool `yaml:",inline"`
	// DurableStreamsStore lets users create streams.
	DurableStreamsStore bool     `yaml:"durable_streams_store"`
	DurableStreamsWait  Duration `yaml:"durable_streams_wait"`
	// OpenClawUI is the folder of the Control UI; empty for none.
	OpenClawUI string `yaml:"openclaw_ui"`
}

// IsOn reports whether an output is on. An output without a name always is.
func (o *Outputs) IsOn(name string) bool {
	on := o.Switches[name]
	return name == "" || on != nil && *on
}

// defaultOutputs returns the outputs with their defaults.
func defaultOutputs() Outputs {
	o := Outputs{Switches: map[string]*bool{}, DurableStreamsWait: Duration(defaultStreamsWait)}
	for _, output := range outputs.List(outputs.Options{}) {
		if output.Name != "" {
			o.Switches[output.Name] = &output.Default
		}
	}
	return o
}

// defaultStreamsWait is how long a long poll of a stream waits for data: less than the 30 to 60 seconds after which proxies give up a request
// without an answer. maxStreamsWait is the longest that any known proxy waits.
const (
	defaultStreamsWait = 20 * time.Second
	maxStreamsWait     = 5 * time.Minute
)

// check refuses a store without the routes that read it, and times with which clients would poll all the time or lose their connections.
func (o *Outputs) check(bad reporter) {
	if o.DurableStreamsStore && !o.IsOn(outputs.DurableStreams) {
		bad("outputs.durable_streams_store", "requires outputs.durable_streams: true")
	}
	if wait := time.Duration(o.DurableStreamsWait); wait < time.Second || wait > maxStreamsWait {
		bad("outputs.durable_streams_wait", "%v must be between 1s and %v", wait, maxStreamsWait)
	}
}

// Plugins configures plugins that are installed while the gateway runs.
type Plugins struct {
	Enabled bool `yaml:"enabled"`
	// Env lists the environment variables of the gateway that plugins may request.
	Env []string `yaml:"env"`
	// AllowPrivate allows archives from addresses of this machine and its network.
	AllowPrivate bool `yaml:"allow_private"`
}

// check refuses names that can't be names of variables, and those that begin with LEAT_ or ELIZA_: they may contain
// the gateway's own secrets, which no plugin may get.
func (p *Plugins) check(bad reporter) {
	if err := process.CheckEnv(p.Env); err != nil {
		bad("plugins.env", "%w", err)
	}
}

// quotas limit the usage of each user or each tenant: turns that are queued, running or waiting, messages a minute, stored bytes,
// and streams that are open at the same time. 0 means unlimited.
type quotas struct {
	Turns    int  `yaml:"turns"`
	Messages int  `yaml:"messages"`
	Bytes    Size `yaml:"bytes"`
	Viewers  int  `yaml:"viewers"`
}

// Limits returns the quota in the gateway's form.
func (q quotas) Limits() quota.Limits {
	return quota.Limits{Turns: q.Turns, Messages: q.Messages, Bytes: int64(q.Bytes), Viewers: q.Viewers}
}

// check refuses negative numbers. Bytes needs no check, because a [Size] is never negative.
func (q quotas) check(prefix string, bad reporter) {
	for _, l := range []struct {
		key   string
		value int
	}{{"turns", q.Turns}, {"messages", q.Messages}, {"viewers", q.Viewers}} {
		if l.value < 0 {
			bad(prefix+"."+l.key, "%d must not be negative; 0 means unlimited", l.value)
		}
	}
}

// Record configures the capture of the raw bytes that turns exchange with their agents. The oldest captures are
// deleted when they are older than Retention, or when all together exceed Size.
type Record struct {
	Enabled   bool     `yaml:"enabled"`
	Retention Duration `yaml:"keep"`
	Size      Size     `yaml:"size"`
}

// smallestRecord is the smallest useful size: it fits the bytes of some turns.
const smallestRecord = 1 << 20

// check checks the values.
func (r *Record) check(bad reporter) {
	if r.Retention <= 0 {
		bad("record.keep", "must be greater than 0; to store nothing, set record.enabled to false")
	}
	if r.Size < smallestRecord {
		bad("record.size", "must be at least 1MiB; to store nothing, set record.enabled to false")
	}
}

// Eliza configures the surface for Eliza's clients.
type Eliza struct {
	// QueryToken allows a token in the URL of the WebSocket /ws, as ?token=. Proxies log URLs, so it is off by default.
	QueryToken bool `yaml:"query_token" env:"LEAT_ELIZA_QUERY_TOKEN ELIZA_ALLOW_WS_QUERY_TOKEN"`
	// Emotes is a folder with avatar animations. If it is empty, the gateway has no animations.
	Emotes string `yaml:"emotes"`
}

// Users configures which tokens of end users are valid and what their claims mean. Users are enabled if one of Secret, SecretFile,
// KeyFile and JWKS is set.
type Users struct {
	Secret     string   `yaml:"secret"`
	SecretFile string   `yaml:"secret_file"`
	KeyFile    string   `yaml:"key_file"`
	JWKS       string   `yaml:"jwks"`
	Issuer     string   `yaml:"issuer"`
	Audience   []string `yaml:"audience"`
	// The names of claims.
	SubjectClaim string `yaml:"subject_claim"`
	TenantClaim  string `yaml:"tenant_claim"`
	ScopesClaim  string `yaml:"scopes_claim"`
	AdminScope   bool   `yaml:"admin_scope"`
}

// Enabled reports whether users can log in with tokens.
func (u *Users) Enabled() bool { return u.sources() > 0 }

// sources returns how many sources of keys are set. More than one is an error: it would be unclear which key signs
// the tokens.
func (u *Users) sources() (n int) {
	for _, s := range []string{u.Secret, u.SecretFile, u.KeyFile, u.JWKS} {
		if s != "" {
			n++
		}
	}
	return n
}

// check checks the sources of keys and the claims. A JWKS belongs to an identity service that signs tokens for many
// programs with the same keys, so it requires an issuer or an audience: a token for another program must not be valid
// here.
func (u *Users) check(bad reporter) {
	n := u.sources()
	switch {
	case n > 1:
		bad("users", "set only one of secret, secret_file, key_file and jwks; %d are set", n)
	case n == 0 && (u.Issuer != "" || len(u.Audience) > 0 || u.TenantClaim != "" || u.ScopesClaim != "" || u.AdminScope):
		bad("users", "tokens can't be verified without a key; set one of secret, secret_file, key_file and jwks")
	}
	if u.Secret != "" && len(u.Secret) < minSecret {
		bad("users.secret", "has %d bytes, at least %d are required; generate one with openssl rand -base64 48", len(u.Secret), minSecret)
	}
	if u.JWKS != "" {
		a, err := url.Parse(u.JWKS)
		switch {
		case err != nil || a.Host == "" || (a.Scheme != "https" && a.Scheme != "http"):
			bad("users.jwks", "invalid URL; write it as https://id.example.com/.well-known/jwks.json")
		case a.Scheme == "http" && !Loopback(a.Hostname()):
			bad("users.jwks", "use https; with http, an attacker on the network could replace the keys")
		}
		if u.Issuer == "" && len(u.Audience) == 0 {
			bad("users.jwks", "set users.audience or users.issuer, because an identity service signs tokens for other programs as well")
		}
	}
	if u.SubjectClaim == "" {
		bad("users.subject_claim", "must not be empty; the usual claim is sub")
	}
	if u.AdminScope && u.ScopesClaim == "" {
		bad("users.admin_scope", "set users.scopes_claim to the claim that contains the scopes")
	}
}

// minSecret is the minimum length of a secret in bytes. RFC 7518, section 3.2 requires it for HS256.
const minSecret = 32

// hook configures a URL that receives events. Package webhook documents the fields.
type hook struct {
	Name         string   `yaml:"name"`
	URL          string   `yaml:"url"`
	Secret       string   `yaml:"secret"`
	Events       []string `yaml:"events"`
	Content      bool     `yaml:"content"`
	AllowPrivate bool     `yaml:"allow_private"`
}

// Webhooks are the configured webhooks. In the environment they are written as in the file, on one line.
type Webhooks []hook

// parse replaces the webhooks with those of a line of YAML. Unknown keys are errors, as in the file. The error omits
// the line, which contains secrets.
func (w *Webhooks) parse(s string) error {
	var hooks Webhooks
	if err := yaml.UnmarshalWithOptions([]byte(s), &hooks, yaml.Strict()); err != nil {
		return fmt.Errorf("expected a list such as [{name: a, url: https://example.com, secret: …}]: %s", yaml.FormatError(err, false, false))
	}
	*w = hooks
	return nil
}

// Hooks returns the webhooks in the form of package webhook.
func (w Webhooks) Hooks() []webhook.Hook {
	hooks := make([]webhook.Hook, len(w))
	for i, h := range w {
		hooks[i] = webhook.Hook{Name: h.Name, URL: h.URL, Secret: h.Secret, Content: h.Content, AllowPrivate: h.AllowPrivate}
		for _, t := range h.Events {
			hooks[i].Events = append(hooks[i].Events, event.Type(t))
		}
	}
	return hooks
}

// check checks each webhook, which is named by its position and name, and that names are unique: the name identifies
// a webhook in the outbox and in metrics.
func (w Webhooks) check(bad reporter) {
	names := map[string]bool{}
	for i, h := range w.Hooks() {
		for _, err := range h.Check() {
			bad(fmt.Sprintf("webhooks: %d (%s)", i+1, h.Name), "%w", err)
		}
		if names[h.Name] {
			bad("webhooks", "two webhooks have the name %q", h.Name)
		}
		names[h.Name] = true
	}
}

// masked returns a copy without secrets.
func (w Webhooks) masked() Webhooks {
	hooks := append(Webhooks{}, w...)
	for i := range hooks {
		hooks[i].URL = agent.MaskURLs(hooks[i].URL)
		mask(&hooks[i].Secret)
	}
	return hooks
}
