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
	"github.com/leat-dev/leat/internal/channel/telegram"
)

// platform is a kind of channels.
type platform struct {
	kind    string
	options []agent.Option
	open    func(s agent.Spec, log *slog.Logger) (channel.Channel, error)
}

var platforms = []platform{{"telegram", telegramOptions, openTelegram}}

// common are the options of all platforms.
var common = []agent.Option{
	{Name: "agent", Help: "agent of new conversations", Default: "the gateway's default agent"},
	{Name: "allow", Help: "ids of the people who may talk to the channel, separated by commas; others need a pairing code"},
	{Name: "all_messages", Help: "whether the agent answers every message in groups, and not only those that mention the bot or reply to it", Default: "false"},
}

// telegramToken is the variable that has the token if no option gives it.
const telegramToken = "TELEGRAM_BOT_TOKEN"

var telegramOptions = append(agent.SecretOptions("token", "token of the bot, from @BotFather", telegramToken),
	agent.Option{Name: "streaming", Help: "whether answers are shown while they are written", Default: "true"},
	agent.Option{Name: "url", Help: "address of another Bot API server", Default: "that of Telegram"},
)

func openTelegram(s agent.Spec, log *slog.Logger) (channel.Channel, error) {
	token, err := s.Secret("token")
	if err != nil {
		return nil, err
	}
	o := telegram.Options{Name: s.Name, URL: s.Options["url"], Log: log}
	if o.Token = cmp.Or(token, strings.TrimSpace(os.Getenv(telegramToken))); o.Token == "" {
		return nil, fmt.Errorf("no token is given: set token, token_env or token_file, or the variable %s", telegramToken)
	}
	if o.Streaming, err = s.Bool("streaming", true); err != nil {
		return nil, err
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	return telegram.New(o), nil
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
	o := channel.Options{Agent: s.Options["agent"]}
	for id := range strings.SplitSeq(s.Options["allow"], ",") {
		if id = strings.TrimSpace(id); id != "" {
			o.Allow = append(o.Allow, id)
		}
	}
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
	if s.Options["token"] != "" {
		s.Options["token"] = "***"
	}
	for name, value := range s.Options {
		s.Options[name] = agent.MaskURLs(value)
	}
	return s
}
