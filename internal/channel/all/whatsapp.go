package all

import (
	"log/slog"
	"slices"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/whatsapp"
)

// The variables that have the secrets of WhatsApp if no options give them.
const (
	whatsAppToken       = "WHATSAPP_TOKEN"
	whatsAppAppSecret   = "WHATSAPP_APP_SECRET"
	whatsAppVerifyToken = "WHATSAPP_VERIFY_TOKEN"
)

// whatsAppOptions are the options of the kind whatsapp, besides those of every channel.
var whatsAppOptions = slices.Concat(
	[]agent.Option{{Name: "phone_number_id", Help: "id of the phone number, in digits"}},
	agent.SecretOptions("token", "access token of a system user", whatsAppToken),
	agent.SecretOptions("app_secret", "secret of the app, which signs the requests to the webhook", whatsAppAppSecret),
	agent.SecretOptions("verify_token", "text with which the webhook is set up", whatsAppVerifyToken),
	[]agent.Option{{Name: "url", Help: "address of another Cloud API server, with the version", Default: "that of Meta"}},
)

// openWhatsApp makes a WhatsApp number from its configuration.
func openWhatsApp(s agent.Spec, log *slog.Logger) (channel.Channel, error) {
	o := whatsapp.Options{Name: s.Name, Number: s.Options["phone_number_id"], URL: s.Options["url"], Log: log}
	var err error
	if o.Token, err = secretOf(s, "token", whatsAppToken); err != nil {
		return nil, err
	}
	if o.AppSecret, err = secretOf(s, "app_secret", whatsAppAppSecret); err != nil {
		return nil, err
	}
	if o.VerifyToken, err = secretOf(s, "verify_token", whatsAppVerifyToken); err != nil {
		return nil, err
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	return whatsapp.New(o), nil
}
