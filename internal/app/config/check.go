// The checks of a whole configuration. All problems are reported at once, each with its key.

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

// reporter collects an error about a key. Its message is formatted as by [fmt.Errorf].
type reporter func(key, format string, args ...any)

// Check reports every error in the configuration, each with its key, so that a user can correct all of them at once.
// It fills in the data folder, and the default agent if none is set. Errors are [ErrInvalid]. Check reads no files of
// agents; making the agents reports those errors.
//
// Each part of the configuration checks its own keys, with bad as the collector. Check must be repeatable: a reload
// checks a configuration that was loaded again, and serve one that flags have changed.
func (c *Config) Check(kinds agent.Kinds, getenv func(string) string) error {
	var errs []error
	var bad reporter = func(key, format string, args ...any) {
		errs = append(errs, &keyError{c.sourceOf(key), key, fmt.Errorf(format, args...)})
	}
	if len(c.Listen) == 0 {
		bad("listen", "needs at least one address")
	}
	for _, a := range c.Listen {
		if err := c.checkListen(a); err != nil {
			bad("listen", "%w", err)
		}
	}
	if !printable(c.Token) {
		bad("token", "must be printable ASCII without spaces, because it is sent in a header")
	}
	for _, o := range c.AllowedOrigins {
		if o == "*" {
			continue
		}
		if u, err := url.Parse(o); err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" || u.RawQuery != "" {
			bad("allowed_origins", "invalid origin %q; write it as https://chat.example.com", o)
		}
	}
	for _, h := range c.Hosts {
		switch {
		case h == "" || strings.ContainsAny(h, "/ "):
			bad("hosts", "invalid host %q; write it as chat.example.com", h)
		case h == "*" && c.Open():
			bad("hosts", "\"*\" requires a token: set one (LEAT_API_TOKEN)")
		}
	}
	c.checkSite(bad)
	c.Users.check(bad)
	c.checkAgents(kinds, bad)
	c.Webhooks.check(bad)
	c.Record.check(bad)
	c.Terminal.check(c.Token, bad)
	c.Plugins.check(bad)
	c.Outputs.check(bad)
	c.checkChannels(bad)
	c.Voice.check(bad)
	if c.Sync != syncFull && c.Sync != syncNormal {
		bad("sync", "unknown value %q; use %s or %s", c.Sync, syncFull, syncNormal)
	}
	if !slices.Contains([]string{FormatAuto, formatText, FormatJSON}, c.Log.Format) {
		bad("log.format", "unknown value %q; use %s, %s or %s", c.Log.Format, FormatAuto, formatText, FormatJSON)
	}
	if _, err := c.Level(); err != nil {
		bad("log.level", "unknown level %q; use debug, info, warn or error", c.Log.Level)
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
			bad(l.key, "must be greater than 0")
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

// printable reports whether a token can be sent in a header.
func printable(token string) bool {
	return !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}

// checkListen checks an address. Without a token, everyone who can connect may do everything, so only loopback
// addresses and Unix sockets are accepted then. A mistake in the configuration must not open the gateway to the
// network.
func (c *Config) checkListen(address string) error {
	if path, ok := strings.CutPrefix(address, UnixPrefix); ok {
		if path == "" || strings.HasSuffix(path, "/") {
			return fmt.Errorf("%q has no path of a socket; write it as unix:/run/leat.sock", address)
		}
		return nil // the permissions of the socket file decide who may connect
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("invalid address %q; write it as 127.0.0.1:31337", address)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("invalid address %q: %q is not a port", address, port)
	}
	if c.Open() && !Loopback(host) {
		return fmt.Errorf("%q is reachable from other machines, and no token is set; set one (LEAT_API_TOKEN), configure users, or listen on 127.0.0.1", address)
	}
	return nil
}

// Open reports whether requests need no token: neither the API token nor tokens of users are configured.
func (c *Config) Open() bool { return c.Token == "" && !c.Users.Enabled() }

// Loopback reports whether only this machine can reach a host. Names other than localhost are not resolved, because their addresses can
// change later.
func Loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// checkAgents checks the names and options of the agents, and fills in the default agent. The error of a duplicate
// name proposes another, because two agents of the same kind get the same name on the command line if none is given.
func (c *Config) checkAgents(kinds agent.Kinds, bad reporter) {
	names := map[string]bool{}
	for _, s := range c.Agents {
		if names[s.Name] {
			bad("agents", "two agents have the name %q; rename one, as NAME=%s", s.Name, s.Kind)
		}
		names[s.Name] = true
		if _, err := kinds.Check(s); err != nil {
			bad("agents", "%w", err)
		}
	}
	switch {
	case c.DefaultAgent == "" && len(c.Agents) > 0:
		c.DefaultAgent = c.Agents[0].Name
	case c.DefaultAgent != "" && !names[c.DefaultAgent]:
		bad("default_agent", "there is no agent %q", c.DefaultAgent)
	}
}

// Level returns the log level, or an error if it is unknown. Besides the names, slog accepts offsets such as debug-2.
func (c *Config) Level() (slog.Level, error) {
	var l slog.Level
	err := l.UnmarshalText([]byte(c.Log.Level))
	return l, err
}

// SilenceOf returns an agent's limit on silence in the gateway's form: its own limit if it has one, else the general one. A
// negative value means unlimited.
func (c *Config) SilenceOf(s agent.Spec) time.Duration {
	if s.Silence != 0 {
		return s.Silence
	}
	return optional(c.Silence)
}

// TurnLimitOf returns the limit on the time of a turn in the gateway's form. A negative value means unlimited.
func (c *Config) TurnLimitOf() time.Duration { return optional(c.TurnLimit) }

// YAML returns the whole configuration as a file. Secrets are masked.
func (c Config) YAML(kinds agent.Kinds) ([]byte, error) { return yaml.Marshal(c.masked(kinds)) }

// JSON returns the whole configuration as JSON. Secrets are masked.
func (c Config) JSON(kinds agent.Kinds) ([]byte, error) {
	return yaml.MarshalWithOptions(c.masked(kinds), yaml.JSON())
}

// masked returns a copy without secrets, in which the lists with secrets are copied too: c itself stays in use.
// Passwords and tokens within URLs are masked as well.
func (c Config) masked(kinds agent.Kinds) Config {
	mask(&c.Token)
	mask(&c.Terminal.Token)
	mask(&c.Users.Secret)
	mask(&c.Voice.Speech.Key)
	mask(&c.Voice.Recognition.Key)
	c.Voice.Speech.URL, c.Voice.Recognition.URL = agent.MaskURLs(c.Voice.Speech.URL), agent.MaskURLs(c.Voice.Recognition.URL)
	c.Users.JWKS, c.PublicURL = agent.MaskURLs(c.Users.JWKS), agent.MaskURLs(c.PublicURL)
	agents := make(Agents, len(c.Agents))
	for i, s := range c.Agents {
		agents[i] = kinds.Masked(s)
	}
	c.Agents = agents
	c.Webhooks = c.Webhooks.masked()
	c.Channels = c.Channels.masked()
	return c
}

// mask replaces a secret. An empty value stays empty, so that the output shows whether a secret is set.
func mask(secret *string) {
	if *secret != "" {
		*secret = "***"
	}
}
