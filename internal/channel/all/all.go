// Package all knows the platforms of built-in channels and makes channels from their configuration.
//
// The configuration of a channel is an [agent.Spec], as that of an agent is: a name, a kind, and options. The kind is the platform.
package all

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/channel"
)

// common are the options of all platforms.
var common = []agent.Option{
	{Name: "agent", Help: "agent of new conversations", Default: "the gateway's default agent"},
	{Name: "allow", Help: "ids of the people who may talk to the channel, separated by commas; others need a pairing code"},
	{Name: "all_messages", Help: "whether the agent answers every message in groups, and not only those that mention the bot or reply to it", Default: "false"},
}

// Names returns the kinds of channels.
func Names() []string {
	names := make([]string, len(platforms))
	for i, p := range platforms {
		names[i] = p.kind
	}
	return names
}

// New makes the channel of a spec. It connects to nothing, so it can also be used to check a spec. Errors name the channel.
func New(s agent.Spec, log *slog.Logger) (channel.Channel, channel.Options, error) {
	fail := func(format string, args ...any) (channel.Channel, channel.Options, error) {
		return nil, channel.Options{}, fmt.Errorf("channel %s: %w", s.Name, fmt.Errorf(format, args...))
	}
	i := slices.IndexFunc(platforms, func(p platform) bool { return p.kind == s.Kind })
	if i < 0 {
		return fail("unknown kind %q; use one of %s", s.Kind, strings.Join(Names(), ", "))
	}
	p := &platforms[i]
	options := slices.Concat(common, p.options)
	for _, secret := range p.secrets {
		options = append(options, agent.SecretOptions(secret.name, secret.help, secret.variable)...)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Options)) {
		if !slices.ContainsFunc(options, func(o agent.Option) bool { return o.Name == name }) {
			return fail("kind %s has no option %q", s.Kind, name)
		}
	}
	o := channel.Options{Agent: s.Options["agent"], Allow: slices.Concat(list(s.Options["allow"]), p.allow)}
	var err error
	if o.AllMessages, err = s.Bool("all_messages", false); err != nil {
		return fail("%w", err)
	}
	ch, err := p.open(&settings{Spec: s, platform: p, log: log})
	if err != nil {
		return fail("%w", err)
	}
	return ch, o, nil
}

// Masked returns a copy of a spec for display, without secrets.
func Masked(s agent.Spec) agent.Spec {
	s.Options = maps.Clone(s.Options)
	i := slices.IndexFunc(platforms, func(p platform) bool { return p.kind == s.Kind })
	for name, value := range s.Options {
		s.Options[name] = agent.MaskURLs(value)
		if value != "" && i >= 0 && platforms[i].secretNamed(name) != nil {
			s.Options[name] = "***"
		}
	}
	return s
}

// secretNamed returns the secret of the platform with a name, or nil.
func (p *platform) secretNamed(name string) *secret {
	if i := slices.IndexFunc(p.secrets, func(s secret) bool { return s.name == name }); i >= 0 {
		return &p.secrets[i]
	}
	return nil
}
