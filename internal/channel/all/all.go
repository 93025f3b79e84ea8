// Package all knows the platforms of built-in channels and makes channels from their configuration.
//
// The configuration of a channel is an [agent.Spec], as that of an agent is: a name, a kind, and options. The kind is the platform.
package all

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/web"
)

// platform is a kind of channels. Its options are those that only it has; common options come in addition.
type platform struct {
	kind string
	// options are listed by the commands that describe the configuration, and any other name is refused.
	options []agent.Option
	// open makes a channel without connecting it. Its errors say which option is wrong, without its value if that is a secret.
	open func(s agent.Spec, log *slog.Logger) (channel.Channel, error)
	// allow are the senders whom the channel itself has admitted.
	allow []string
}

// platforms are in the order in which help texts list them.
var platforms = []platform{
	{kind: "telegram", options: telegramOptions, open: openTelegram},
	{kind: "web", options: webOptions, open: openWeb, allow: []string{web.Visitor}},
	{kind: "matrix", options: matrixOptions, open: openMatrix},
	{kind: "discord", options: discordOptions, open: openDiscord},
	{kind: "slack", options: slackOptions, open: openSlack},
	{kind: "whatsapp", options: whatsAppOptions, open: openWhatsApp},
	{kind: "feishu", options: feishuOptions, open: openFeishu},
	{kind: "wecom", options: weComOptions, open: openWeCom},
}

// common are the options of all platforms.
var common = []agent.Option{
	{Name: "agent", Help: "agent of new conversations", Default: "the gateway's default agent"},
	{Name: "allow", Help: "ids of the people who may talk to the channel, separated by commas; others need a pairing code"},
	{Name: "all_messages", Help: "whether the agent answers every message in groups, and not only those that mention the bot or reply to it", Default: "false"},
}

// secretOf returns the secret of an option, or that of the variable that has it if no option gives it. It is an error if neither does.
func secretOf(s agent.Spec, option, variable string) (string, error) {
	v, err := s.Secret(option)
	if err != nil {
		return "", err
	}
	if v = cmp.Or(v, strings.TrimSpace(os.Getenv(variable))); v == "" {
		return "", fmt.Errorf("no %[1]s is given: set %[1]s, %[1]s_env or %[1]s_file, or the variable %[2]s", option, variable)
	}
	return v, nil
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
	options := slices.Concat(common, platforms[i].options)
	for _, name := range slices.Sorted(maps.Keys(s.Options)) {
		if !slices.ContainsFunc(options, func(o agent.Option) bool { return o.Name == name }) {
			return fail("kind %s has no option %q", s.Kind, name)
		}
	}
	o := channel.Options{Agent: s.Options["agent"], Allow: slices.Concat(list(s.Options["allow"]), platforms[i].allow)}
	var err error
	if o.AllMessages, err = s.Bool("all_messages", false); err != nil {
		return fail("%w", err)
	}
	ch, err := platforms[i].open(s, log)
	if err != nil {
		return fail("%w", err)
	}
	return ch, o, nil
}

// Masked returns a copy of a spec for display, without secrets.
func Masked(s agent.Spec) agent.Spec {
	s.Options = maps.Clone(s.Options)
	for name, value := range s.Options {
		s.Options[name] = agent.MaskURLs(value)
		if value != "" && isSecret(s.Kind, name) {
			s.Options[name] = "***"
		}
	}
	return s
}

// isSecret reports whether an option has a secret: then it can also be given by a file.
func isSecret(kind, name string) bool {
	for _, p := range platforms {
		if p.kind == kind {
			return slices.ContainsFunc(p.options, func(o agent.Option) bool { return o.Name == name+"_file" })
		}
	}
	return false
}
