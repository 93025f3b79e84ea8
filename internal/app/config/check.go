package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/leat-dev/leat/agent"
)

// Check reports everything that is wrong with the configuration, each error with its key. It fills in the folder of the
// data, and the default agent where only its place in the list says which it is.
func (c *Config) Check(kinds agent.Kinds, getenv func(string) string) error {
	var errs []error
	bad := func(key, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: %s: %w", ErrInvalid, key, fmt.Errorf(format, args...)))
	}
	if len(c.Listen) == 0 {
		bad("listen", "an address is needed")
	}
	for _, a := range c.Listen {
		if err := c.checkListen(a); err != nil {
			bad("listen", "%w", err)
		}
	}
	if !printable(c.Token) {
		bad("token", "it may hold printable ASCII without spaces only, to fit into a header")
	}
	for _, o := range c.AllowedOrigins {
		if o == "*" {
			continue
		}
		if u, err := url.Parse(o); err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" || u.RawQuery != "" {
			bad("allowed_origins", "%q is no origin; write it as https://chat.example.com", o)
		}
	}
	for _, h := range c.Hosts {
		switch {
		case h == "" || strings.ContainsAny(h, "/ "):
			bad("hosts", "%q is no host; write it as chat.example.com", h)
		case h == "*" && c.Open():
			bad("hosts", "every host is allowed only where a token is set")
		}
	}
	c.checkSite(bad)
	c.Users.check(bad)
	c.checkAgents(kinds, bad)
	c.Webhooks.check(bad)
	c.Record.check(bad)
	c.Terminal.check(c.Token, bad)
	c.Plugins.check(bad)
	if c.Sync != SyncFull && c.Sync != SyncNormal {
		bad("sync", "%q; it is %s or %s", c.Sync, SyncFull, SyncNormal)
	}
	if !slices.Contains([]string{FormatAuto, FormatText, FormatJSON}, c.Log.Format) {
		bad("log.format", "%q; it is %s, %s or %s", c.Log.Format, FormatAuto, FormatText, FormatJSON)
	}
	if _, err := c.Level(); err != nil {
		bad("log.level", "%q; it is debug, info, warn or error", c.Log.Level)
	}
	for _, l := range []struct {
		key   string
		value int64
	}{
		{"limits.message", int64(c.Limits.Message)},
		{"limits.queued", int64(c.Limits.Queued)},
		{"limits.history", int64(c.Limits.History)},
		{"limits.history_bytes", int64(c.Limits.HistoryBytes)},
		{"limits.file", int64(c.Limits.File)},
		{"limits.connections", int64(c.Limits.Connections)},
		{"wait_limit", int64(c.WaitLimit)},
		{"lease", int64(c.Lease)},
		{"trace_retention", int64(c.TraceRetention)},
		{"usage_retention", int64(c.UsageRetention)},
	} {
		if l.value <= 0 {
			bad(l.key, "it has to be above 0")
		}
	}
	c.Limits.User.check("limits.user", bad)
	c.Limits.Tenant.check("limits.tenant", bad)
	if c.Data == "" {
		dir, err := DataDir(getenv)
		if err != nil {
			errs = append(errs, err)
		}
		c.Data = dir
	}
	c.Files.check(c.Data, bad)
	return errors.Join(errs...)
}

// printable reports whether a token fits into a header.
func printable(token string) bool {
	return !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}

func (c *Config) checkListen(address string) error {
	if path, ok := strings.CutPrefix(address, UnixPrefix); ok {
		if path == "" || strings.HasSuffix(path, "/") {
			return fmt.Errorf("%q names no socket; write it as unix:/run/leat.sock", address)
		}
		return nil // the rights of its file say who may connect
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is no address; write it as 127.0.0.1:31337", address)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q: %q is no port", address, port)
	}
	if c.Open() && !Loopback(host) {
		return fmt.Errorf("%q can be reached from outside, and no token is set: set one (LEAT_API_TOKEN), let users in with theirs (users), or listen on 127.0.0.1", address)
	}
	return nil
}

// Open reports whether nobody needs a token.
func (c *Config) Open() bool { return c.Token == "" && !c.Users.Enabled() }

// Loopback reports whether only this machine can reach the host. A name other than localhost is not looked up: what it
// leads to may change.
func Loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

func (c *Config) checkAgents(kinds agent.Kinds, bad func(key, format string, args ...any)) {
	seen := map[string]bool{}
	for _, s := range c.Agents {
		if seen[s.Name] {
			bad("agents", "two agents are named %q; give one another name: NAME=%s", s.Name, s.Kind)
		}
		seen[s.Name] = true
		if _, err := kinds.Check(s); err != nil {
			bad("agents", "%w", err)
		}
	}
	switch {
	case c.DefaultAgent == "" && len(c.Agents) > 0:
		c.DefaultAgent = c.Agents[0].Name
	case c.DefaultAgent != "" && !seen[c.DefaultAgent]:
		bad("default_agent", "no agent is named %q", c.DefaultAgent)
	}
}

// Level returns the level of the log.
func (c *Config) Level() (slog.Level, error) {
	var l slog.Level
	err := l.UnmarshalText([]byte(c.Log.Level))
	return l, err
}

// SilenceOf returns the limit on an agent's silence as the gateway takes it: its own, else the configured one.
func (c *Config) SilenceOf(s agent.Spec) time.Duration {
	if s.Silence != 0 {
		return s.Silence
	}
	return optional(c.Silence)
}

// TurnLimitOf returns the limit on how long a turn may run as the gateway takes it.
func (c *Config) TurnLimitOf() time.Duration { return optional(c.TurnLimit) }

// YAML returns the configuration as a file that says all of it. Secrets are masked.
func (c Config) YAML(kinds agent.Kinds) ([]byte, error) { return yaml.Marshal(c.masked(kinds)) }

// JSON is YAML as JSON.
func (c Config) JSON(kinds agent.Kinds) ([]byte, error) {
	return yaml.MarshalWithOptions(c.masked(kinds), yaml.JSON())
}

func (c Config) masked(kinds agent.Kinds) Config {
	if c.Token != "" {
		c.Token = "***"
	}
	if c.Terminal.Token != "" {
		c.Terminal.Token = "***"
	}
	if c.Users.Secret != "" {
		c.Users.Secret = "***"
	}
	c.Users.JWKS, c.PublicURL = agent.MaskURLs(c.Users.JWKS), agent.MaskURLs(c.PublicURL)
	agents := make(Agents, len(c.Agents))
	for i, s := range c.Agents {
		agents[i] = kinds.Masked(s)
	}
	c.Agents = agents
	c.Webhooks = c.Webhooks.masked()
	return c
}
