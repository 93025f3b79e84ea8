package all

import (
	"log/slog"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/matrix"
)

// matrixOptions switch streaming off by default: each edit stays in the room's history, and many homeservers allow few events.
var matrixOptions = append(agent.SecretOptions("token", "access token of the bot's account", "MATRIX_ACCESS_TOKEN"),
	agent.Option{Name: "server", Help: "address of the homeserver's client API, such as https://matrix.example.org"},
	agent.Option{Name: "streaming", Help: "whether answers are shown while they are written, by edits of a message", Default: "false"},
)

// openMatrix makes a Matrix channel. The account has to exist: the bot doesn't register one.
func openMatrix(s agent.Spec, log *slog.Logger) (channel.Channel, error) {
	token, err := secretOf(s, "token", "MATRIX_ACCESS_TOKEN")
	if err != nil {
		return nil, err
	}
	o := matrix.Options{Name: s.Name, Server: s.Options["server"], Token: token, Log: log}
	if o.Streaming, err = s.Bool("streaming", false); err != nil {
		return nil, err
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	return matrix.New(o), nil
}
