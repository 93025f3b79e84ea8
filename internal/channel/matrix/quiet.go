package matrix

import (
	"context"
	"errors"
	"net/http"

	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/channel/live"
)

// wantsQuiet reports whether the room wants no live messages (MSC4357). If that is unknown, the answer is sent as a whole. A room
// without the state event wants live messages.
func (t *chat) wantsQuiet(ctx context.Context) bool {
	var state struct {
		Enabled *bool `json:"enabled"`
	}
	for {
		err := t.call(ctx, http.MethodGet, path("client/v3/rooms/%s/state/org.matrix.msc4357.live_messaging", t.at.room), nil, &state)
		if p, ok := errors.AsType[*live.Penalty](err); ok && retry.Sleep(ctx, p.Wait) == nil {
			continue
		}
		return err != nil && code(err) != codeNotFound || state.Enabled != nil && !*state.Enabled
	}
}
