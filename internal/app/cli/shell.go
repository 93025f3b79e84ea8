package cli

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/eliza"
	console "github.com/leat-dev/leat/internal/service/terminal"
	"github.com/leat-dev/leat/internal/store/files"
)

// shell registers the terminal's route, which refuses everybody where no terminal is enabled. stop ends all its commands, and
// returns when they have.
func shell(cfg *config.Config, srv *server.Server, live *hub.Hub, log *slog.Logger) (stop func(), err error) {
	if err := console.Sweep(cfg.Data); err != nil { // also where no terminal is enabled any more
		log.Error("a process of a command may be left", "error", err)
	}
	if !cfg.Terminal.Enabled {
		eliza.RegisterTerminal(srv, eliza.TerminalOptions{})
		return func() {}, nil
	}
	t, err := console.New(console.Config{MaxDuration: time.Duration(cfg.Terminal.MaxDuration), MaxRuns: cfg.Terminal.Concurrent, Data: cfg.Data, Log: log})
	if err != nil {
		return nil, fmt.Errorf("%w: terminal.enabled: %w", config.ErrInvalid, err)
	}
	eliza.RegisterTerminal(srv, eliza.TerminalOptions{Terminal: t, Token: cfg.Terminal.Token, Send: func(client string, frame []byte) {
		live.Send(hub.Frame{Client: client, JSON: frame})
	}})
	return t.Close, nil
}

// openWorkspace opens the folder that is shared with agents; nil where there is none.
func openWorkspace(cfg *config.Config) (_ *files.Workspace, end func(), err error) {
	if cfg.Files.Workspace == "" {
		return nil, func() {}, nil
	}
	w, err := files.OpenWorkspace(cfg.Files.Workspace)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: files.workspace: %w", config.ErrInvalid, err)
	}
	return w, func() { _ = w.Close() }, nil // nothing is written any more
}

// emotes registers the animations of avatars.
func emotes(cfg *config.Config, srv *server.Server, live *hub.Hub) (err error) {
	opt := eliza.EmoteOptions{Send: live.Send}
	if cfg.Eliza.Emotes != "" {
		if opt.Emotes, err = eliza.LoadEmotes(cfg.Eliza.Emotes); err != nil {
			return fmt.Errorf("%w: eliza.emotes: %w", config.ErrInvalid, err)
		}
	}
	eliza.RegisterEmotes(srv, opt)
	return nil
}
