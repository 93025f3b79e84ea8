package serve

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/server/elizaws"
	"github.com/leat-dev/leat/internal/service/webpush"
	"github.com/leat-dev/leat/internal/store/journal/sqlite"
)

// openNotices opens the service that notifies users. Push services get the public URL as the operator's contact.
func openNotices(ctx context.Context, cfg *config.Config, j *sqlite.Journal, log *slog.Logger) (*webpush.Service, error) {
	public, err := cfg.Public()
	if err != nil {
		return nil, fmt.Errorf("%w: public_url: %w", config.ErrInvalid, err)
	}
	c := webpush.Config{Journal: j, Log: log}
	if public != nil && public.Scheme == "https" {
		c.Contact = public.String()
	}
	return webpush.Open(ctx, c)
}

// showNotices returns a function that sends notices to the open pages of their users.
func showNotices(h *hub.Hub) func(webpush.Notice) {
	return func(n webpush.Notice) { h.Send(elizaws.Notice(n)) }
}
