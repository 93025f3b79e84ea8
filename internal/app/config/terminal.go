package config

import (
	"time"

	"github.com/leat-dev/leat/internal/service/terminal"
)

// Terminal configures shell commands on this machine through the API. A command has all rights of the gateway's user,
// so the terminal is disabled by default and has a separate token.
type Terminal struct {
	Enabled     bool     `yaml:"enabled"`
	Token       string   `yaml:"token" env:"LEAT_TERMINAL_TOKEN ELIZA_TERMINAL_RUN_TOKEN"`
	MaxDuration Duration `yaml:"max_duration"`
	Concurrent  int      `yaml:"concurrent"`
}

// minTerminalToken is the minimum length of the terminal's token in bytes. The token gives access to a shell, so it must not be guessable.
const minTerminalToken = 16

// check requires a token that is long and differs from the API token. The limits are checked also if the terminal is
// disabled, so that enabling it later finds them valid.
func (t *Terminal) check(api string, bad reporter) {
	switch {
	case t.Enabled && t.Token == "":
		bad("terminal.token", "the terminal needs a separate token; generate one with openssl rand -hex 32")
	case t.Token != "" && len(t.Token) < minTerminalToken:
		bad("terminal.token", "has %d bytes, at least %d are required; generate one with openssl rand -hex 32", len(t.Token), minTerminalToken)
	case t.Token != "" && t.Token == api:
		bad("terminal.token", "must differ from the API token, whose holders must not get a shell")
	case !printable(t.Token):
		bad("terminal.token", "must be printable ASCII without spaces, because it is sent in a header")
	}
	if d := time.Duration(t.MaxDuration); d < time.Millisecond || d > terminal.MaxMaxDuration {
		bad("terminal.max_duration", "%s must be greater than 0 and at most %s", d, terminal.MaxMaxDuration)
	}
	if t.Concurrent < 1 || t.Concurrent > terminal.MaxMaxRuns {
		bad("terminal.concurrent", "%d must be from 1 to %d", t.Concurrent, terminal.MaxMaxRuns)
	}
}
