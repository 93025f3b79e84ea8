package channels

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/leat-dev/leat/agent/plugin"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// kindPlugin is the kind of channels that are plugins.
const kindPlugin = "plugin"

// row is a channel in the list.
type row struct {
	channel.State
	Ready     bool   `json:"ready"`
	Error     string `json:"error,omitempty"`
	LastError string `json:"lastError,omitempty"`
	FailedAt  int64  `json:"failedAt,omitempty"` // epoch milliseconds
	// PenaltyEnd is until when the platform makes chats wait, in epoch milliseconds.
	PenaltyEnd int64 `json:"penaltyEnd,omitempty"`
	// Capabilities is what a plugin declares. Those of built-in channels are documented, so it is nil.
	Capabilities *plugin.Capabilities `json:"capabilities,omitempty"`
}

// newRow returns the row of a channel that is ready if it has no error.
func newRow(state channel.State) row {
	r := row{State: state, Ready: state.Err == nil}
	if state.Penalized > 0 {
		r.PenaltyEnd = state.PenaltyEnd.UnixMilli()
	}
	if state.Err != nil {
		r.Error = state.Err.Error()
	}
	if state.LastFailure != nil {
		r.LastError, r.FailedAt = state.LastFailure.Error(), state.FailedAt.UnixMilli()
	}
	return r
}

// list answers GET /api/channels with the channels, and the people who want to be admitted.
func (s *surface) list(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
	rows := []row{}
	for _, state := range s.pipeline.States() {
		rows = append(rows, newRow(state))
	}
	if s.plugins != nil {
		states, err := s.plugins.Channels(r.Context())
		if err != nil {
			return err
		}
		for _, p := range states {
			entry := newRow(channel.State{
				Name: p.Name, Kind: kindPlugin, Chats: p.Chats, Deliveries: p.Deliveries, Failures: p.Failures,
				Err: p.Err, LastFailure: p.LastFailure, FailedAt: p.FailedAt,
			})
			entry.Ready, entry.Capabilities = p.IsReady, &p.Capabilities
			rows = append(rows, entry)
		}
		slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.Name, b.Name) })
	}
	requests, err := s.pipeline.Pairings(r.Context())
	if err != nil {
		return err
	}
	server.WriteJSON(w, http.StatusOK, struct {
		Channels []row             `json:"channels"`
		Pairings []channel.Pairing `json:"pairings"`
	}{rows, append([]channel.Pairing{}, requests...)})
	return nil
}
