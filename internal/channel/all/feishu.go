package all

import (
	"log/slog"
	"slices"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/feishu"
)

// The variables that have the secrets of Feishu if no options give them.
const (
	feishuAppSecret  = "FEISHU_APP_SECRET"
	feishuEncryptKey = "FEISHU_ENCRYPT_KEY"
)

// feishuOptions are the options of the kind feishu, besides those of every channel.
var feishuOptions = slices.Concat(
	[]agent.Option{{Name: "app_id", Help: "id of the app"}},
	agent.SecretOptions("app_secret", "secret of the app", feishuAppSecret),
	agent.SecretOptions("encrypt_key", "key that signs and encrypts the requests to the webhook", feishuEncryptKey),
	[]agent.Option{
		{Name: "streaming", Help: "whether answers are shown while they are written", Default: "false"},
		{Name: "url", Help: "address of the platform, such as https://open.larksuite.com", Default: "that of Feishu"},
	},
)

// openFeishu makes a Feishu bot from its configuration.
func openFeishu(s agent.Spec, log *slog.Logger) (channel.Channel, error) {
	o := feishu.Options{Name: s.Name, AppID: s.Options["app_id"], URL: s.Options["url"], Log: log}
	var err error
	if o.AppSecret, err = secretOf(s, "app_secret", feishuAppSecret); err != nil {
		return nil, err
	}
	if o.EncryptKey, err = secretOf(s, "encrypt_key", feishuEncryptKey); err != nil {
		return nil, err
	}
	if o.Streaming, err = s.Bool("streaming", false); err != nil {
		return nil, err
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	return feishu.New(o), nil
}
