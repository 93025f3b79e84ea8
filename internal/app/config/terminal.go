package config

import (
	"time"

	"github.com/leat-dev/leat/internal/service/terminal"
)

// Terminal says whether commands may be run on this machine by way of the API.
type Terminal struct {
	Enabled     bool     `yaml:"enabled"`
	Token       string   `yaml:"token" env:"LEAT_TERMINAL_TOKEN ELIZA_TERMINAL_RUN_TOKEN"`
	MaxDuration Duration `yaml:"max_duration"`
	Concurrent  int      `yaml:"concurrent"`
}

// minTerminalToken is how long the terminal's token has to be, in bytes: there is a shell behind it.
const minTerminalToken = 16

func (t *Terminal) check(api string, bad func(key, format string, args ...any)) {
	switch {
	case t.Enabled && t.Token == "":
		bad("terminal.token", "the terminal needs a token of its own: openssl rand -hex 32 makes one")
	case t.Token != "" && len(t.Token) < minTerminalToken:
		bad("terminal.token", "it has %d bytes; at least %d are needed, such as openssl rand -hex 32 makes", len(t.Token), minTerminalToken)
	case t.Token != "" && t.Token == api:
		bad("terminal.token", "it may not be the API token: who has that is not to have a shell as well")
	case !printable(t.Token):
		bad("terminal.token", "it may hold printable ASCII without spaces only, to fit into a header")
	}
	if d := time.Duration(t.MaxDuration); d < time.Millisecond || d > terminal.MaxMaxDuration {
		bad("terminal.max_duration", "%s; it is above 0 and at most %s", d, terminal.MaxMaxDuration)
	}
	if t.Concurrent < 1 || t.Concurrent > terminal.MaxMaxRuns {
		bad("terminal.concurrent", "%d; it is 1 to %d", t.Concurrent, terminal.MaxMaxRuns)
	}
}
