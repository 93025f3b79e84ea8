package serve

import (
	"fmt"
	"time"

	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/eliza"
	console "github.com/leat-dev/leat/internal/service/terminal"
)

// openShell registers the terminal's route, which refuses all requests if the terminal is not enabled. Close ends all
// commands and waits for them. On Linux openShell first kills processes of commands that a killed gateway with this
// data folder left running.
func (a *App) openShell(frames *hub.Hub) error {
	cfg, log := &a.cfg, a.log.With("part", "terminal")
	if err := console.Sweep(cfg.Data); err != nil { // also if the terminal was disabled since
		log.Error("a process of a terminal command may still be running", "error", err)
	}
	if !cfg.Terminal.Enabled {
		eliza.RegisterTerminal(a.server, eliza.TerminalOptions{})
		return nil
	}
	t, err := console.New(console.Config{MaxDuration: time.Duration(cfg.Terminal.MaxDuration), MaxRuns: cfg.Terminal.Concurrent, Data: cfg.Data, Log: log})
	if err != nil {
		return fmt.Errorf("%w: terminal.enabled: %w", config.ErrInvalid, err)
	}
	a.onClose(func() error { t.Close(); return nil })
	eliza.RegisterTerminal(a.server, eliza.TerminalOptions{Terminal: t, Token: cfg.Terminal.Token, Send: func(client string, frame []byte) {
		frames.Send(hub.Frame{Client: client, JSON: frame})
	}})
	return nil
}

// emotes registers the animations of avatars. A folder that can't be read is an error of the configuration.
func emotes(cfg *config.Config, srv *server.Server, frames *hub.Hub) (err error) {
	opt := eliza.EmoteOptions{Send: frames.Send}
	if cfg.Eliza.Emotes != "" {
		if opt.Emotes, err = eliza.LoadEmotes(cfg.Eliza.Emotes); err != nil {
			return fmt.Errorf("%w: eliza.emotes: %w", config.ErrInvalid, err)
		}
	}
	eliza.RegisterEmotes(srv, opt)
	return nil
}
