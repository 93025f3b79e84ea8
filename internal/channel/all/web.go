package all

import (
	"log/slog"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/web"
)

// webOptions are the options of the kind web, besides those of every channel.
var webOptions = []agent.Option{
	{Name: "listen", Help: "address to listen on, or off for the gateway's own address only", Default: web.DefaultListen},
	{Name: "origins", Help: "origins of the pages that may connect, separated by commas; * stands for all"},
	{Name: "public", Help: "whether visitors who are not on this machine need no pairing code", Default: "false"},
}

// openWeb makes a web chat from its configuration.
func openWeb(s agent.Spec, log *slog.Logger) (channel.Channel, error) {
	o := web.Options{Name: s.Name, Listen: s.Options["listen"], Origins: list(s.Options["origins"]), Log: log}
	var err error
	if o.Public, err = s.Bool("public", false); err != nil {
		return nil, err
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	return web.New(o), nil
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
