package all

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/discord"
	"github.com/leat-dev/leat/internal/channel/feishu"
	"github.com/leat-dev/leat/internal/channel/matrix"
	"github.com/leat-dev/leat/internal/channel/slack"
	"github.com/leat-dev/leat/internal/channel/telegram"
	"github.com/leat-dev/leat/internal/channel/web"
	"github.com/leat-dev/leat/internal/channel/wecom"
	"github.com/leat-dev/leat/internal/channel/whatsapp"
)

// platform is a kind of channels. Its secrets and options are those that only it has; common options come in addition.
type platform struct {
	kind    string
	secrets []secret
	// options are listed by the commands that describe the configuration, and any other name is refused.
	options []agent.Option
	// open makes a channel without connecting it. Its errors say which option is wrong, without its value if that is a secret.
	open func(s *settings) (channel.Channel, error)
	// allow are the senders whom the channel itself has admitted.
	allow []string
}

// secret is an option whose value comes from a variable if no option gives it.
type secret struct {
	name, help, variable string
	// isOptional is set if the platform works without the secret.
	isOptional bool
}

// platforms are in the order in which help texts list them.
var platforms = []platform{
	{
		kind: "telegram",
		// One token belongs to one gateway: the server refuses two that poll.
		secrets: []secret{{name: "token", help: "token of the bot, from @BotFather", variable: "TELEGRAM_BOT_TOKEN"}},
		// A webhook is needed only if the gateway has a public address and shall not poll.
		options: []agent.Option{
			streaming(true),
			{Name: "webhook", Help: "public address of /api/channels/NAME/webhook at this gateway, if Telegram shall call it", Default: "none: the bot polls"},
			{Name: "url", Help: "address of another Bot API server", Default: "that of Telegram"},
		},
		open: func(s *settings) (channel.Channel, error) {
			o := telegram.Options{
				Name: s.Name, Token: s.secret("token"), Streaming: s.flag("streaming", true), Webhook: s.Options["webhook"], URL: s.Options["url"], Log: s.log,
			}
			return open(s, o, telegram.New)
		},
	},
	{
		kind: "web",
		options: []agent.Option{
			{Name: "listen", Help: "address to listen on, or off for the gateway's own address only", Default: web.DefaultListen},
			{Name: "origins", Help: "origins of the pages that may connect, separated by commas; * stands for all"},
			{Name: "public", Help: "whether visitors who are not on this machine need no pairing code", Default: "false"},
		},
		open: func(s *settings) (channel.Channel, error) {
			o := web.Options{Name: s.Name, Listen: s.Options["listen"], Origins: list(s.Options["origins"]), Public: s.flag("public", false), Log: s.log}
			return open(s, o, web.New)
		},
		allow: []string{web.Visitor},
	},
	{
		kind: "matrix",
		// The account has to exist: the bot doesn't register one.
		secrets: []secret{{name: "token", help: "access token of the bot's account", variable: "MATRIX_ACCESS_TOKEN"}},
		// Streaming is off by default: each edit stays in the room's history, and many homeservers allow few events.
		options: []agent.Option{
			{Name: "server", Help: "address of the homeserver's client API, such as https://matrix.example.org"},
			streaming(false),
		},
		open: func(s *settings) (channel.Channel, error) {
			o := matrix.Options{Name: s.Name, Server: s.Options["server"], Token: s.secret("token"), Streaming: s.flag("streaming", false), Log: s.log}
			return open(s, o, matrix.New)
		},
	},
	{
		kind:    "discord",
		secrets: []secret{{name: "token", help: "token of the bot, from the Developer Portal", variable: "DISCORD_BOT_TOKEN"}},
		// Channels can't be chosen here: the bot answers in each one to which an administrator adds it.
		options: []agent.Option{streaming(true), {Name: "url", Help: "address of another server with the API of Discord", Default: "that of Discord"}},
		open: func(s *settings) (channel.Channel, error) {
			o := discord.Options{Name: s.Name, Token: s.secret("token"), Streaming: s.flag("streaming", true), URL: s.Options["url"], Log: s.log}
			return open(s, o, discord.New)
		},
	},
	{
		kind: "slack",
		// There are two ways to receive: Socket Mode needs no public address, and requests need no open connection. One of the last two
		// secrets is needed, which Check finds out.
		secrets: []secret{
			{name: "token", help: "token of the bot, which begins with xoxb-", variable: "SLACK_BOT_TOKEN"},
			{name: "app_token", help: "app-level token, which begins with xapp-, to receive by Socket Mode", variable: "SLACK_APP_TOKEN", isOptional: true},
			{name: "signing_secret", help: "signing secret, to receive requests at /api/channels/NAME/webhook", variable: "SLACK_SIGNING_SECRET", isOptional: true},
		},
		options: []agent.Option{streaming(true), {Name: "url", Help: "address of another server with the Web API", Default: "that of Slack"}},
		open: func(s *settings) (channel.Channel, error) {
			o := slack.Options{
				Name: s.Name, Token: s.secret("token"), AppToken: s.secret("app_token"), SigningSecret: s.secret("signing_secret"),
				Streaming: s.flag("streaming", true), URL: s.Options["url"], Log: s.log,
			}
			return open(s, o, slack.New)
		},
	},
	{
		kind: "whatsapp",
		secrets: []secret{
			{name: "token", help: "access token of a system user", variable: "WHATSAPP_TOKEN"},
			{name: "app_secret", help: "secret of the app, which signs the requests to the webhook", variable: "WHATSAPP_APP_SECRET"},
			{name: "verify_token", help: "text with which the webhook is set up", variable: "WHATSAPP_VERIFY_TOKEN"},
		},
		options: []agent.Option{
			{Name: "phone_number_id", Help: "id of the phone number, in digits"},
			{Name: "url", Help: "address of another Cloud API server, with the version", Default: "that of Meta"},
		},
		open: func(s *settings) (channel.Channel, error) {
			o := whatsapp.Options{
				Name: s.Name, Token: s.secret("token"), Number: s.Options["phone_number_id"], AppSecret: s.secret("app_secret"), VerifyToken: s.secret("verify_token"),
				URL: s.Options["url"], Log: s.log,
			}
			return open(s, o, whatsapp.New)
		},
	},
	{
		kind: "feishu",
		secrets: []secret{
			{name: "app_secret", help: "secret of the app", variable: "FEISHU_APP_SECRET"},
			{name: "encrypt_key", help: "key that signs and encrypts the requests to the webhook", variable: "FEISHU_ENCRYPT_KEY"},
		},
		options: []agent.Option{
			{Name: "app_id", Help: "id of the app"},
			streaming(false),
			{Name: "url", Help: "address of the platform, such as https://open.larksuite.com", Default: "that of Feishu"},
		},
		open: func(s *settings) (channel.Channel, error) {
			o := feishu.Options{
				Name: s.Name, AppID: s.Options["app_id"], AppSecret: s.secret("app_secret"), EncryptKey: s.secret("encrypt_key"),
				Streaming: s.flag("streaming", false), URL: s.Options["url"], Log: s.log,
			}
			return open(s, o, feishu.New)
		},
	},
	{
		kind:    "wecom",
		secrets: []secret{{name: "secret", help: "secret of the bot's long connection", variable: "WECOM_BOT_SECRET"}},
		options: []agent.Option{
			{Name: "bot_id", Help: "id of the bot"},
			streaming(false),
			{Name: "url", Help: "address of another server, with ws:// or wss://", Default: "that of WeCom"},
		},
		open: func(s *settings) (channel.Channel, error) {
			o := wecom.Options{
				Name: s.Name, BotID: s.Options["bot_id"], Secret: s.secret("secret"), Streaming: s.flag("streaming", false), URL: s.Options["url"], Log: s.log,
			}
			return open(s, o, wecom.New)
		},
	},
}

// streaming returns the option that shows running turns.
func streaming(isDefault bool) agent.Option {
	return agent.Option{Name: "streaming", Help: "whether answers are shown while they are written", Default: fmt.Sprint(isDefault)}
}

// settings are the options of one channel. The first error of an option is kept and returned by open.
type settings struct {
	agent.Spec
	platform *platform
	log      *slog.Logger
	err      error
}

// secret returns the secret of an option, or that of its variable if no option gives it. It is an error if neither does.
func (s *settings) secret(name string) string {
	value, err := s.Secret(name)
	if err == nil {
		option := s.platform.secretNamed(name)
		if value = cmp.Or(value, strings.TrimSpace(os.Getenv(option.variable))); value == "" && !option.isOptional {
			err = fmt.Errorf("no %[1]s is given: set %[1]s, %[1]s_env or %[1]s_file, or the variable %[2]s", name, option.variable)
		}
	}
	s.err = cmp.Or(s.err, err)
	return value
}

// flag returns the value of an option that is true or false.
func (s *settings) flag(name string, isDefault bool) bool {
	value, err := s.Bool(name, isDefault)
	s.err = cmp.Or(s.err, err)
	return value
}

// open makes a channel from its options, unless one of them is wrong.
func open[O interface{ Check() error }, C channel.Channel](s *settings, o O, newChannel func(O) C) (channel.Channel, error) {
	if err := cmp.Or(s.err, o.Check()); err != nil {
		return nil, err
	}
	return newChannel(o), nil
}

// list returns the values of an option that are separated by commas.
func list(text string) (values []string) {
	for v := range strings.SplitSeq(text, ",") {
		if v = strings.TrimSpace(v); v != "" {
			values = append(values, v)
		}
	}
	return values
}
