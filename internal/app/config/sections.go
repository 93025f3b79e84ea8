package config

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/base/process"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/service/terminal"
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
