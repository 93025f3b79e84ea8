package native

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/store/journal"
)

// recording answers with the bytes that a turn exchanged with its agent, as a recording.
func (n *native) recording(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	turn := r.PathValue("turn")
	return n.gw.WriteRecording(r.Context(), p, turn, &attachment{w: w, name: turn + ".jsonl"})
}

// attachment sets its headers with the first byte: until then an error can be answered.
type attachment struct {
	w     http.ResponseWriter
	name  string
	begun bool
}

func (a *attachment) Write(b []byte) (int, error) {
	if !a.begun {
		a.begun = true
		h := a.w.Header()
		h.Set("Content-Type", "application/x-ndjson")
		h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", a.name))
	}
	return a.w.Write(b)
}

// explain answers with the same, and what came of it.
func (n *native) explain(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	x, err := n.gw.Explain(r.Context(), p, r.PathValue("turn"))
	if err != nil {
		return err
	}
	server.WriteJSON(w, http.StatusOK, x)
	return nil
}

// told answers with what the log has of a turn, as a recording.
func (n *native) told(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	turn := r.PathValue("turn")
	return n.gw.WriteLogRecording(r.Context(), p, turn, &attachment{w: w, name: turn + ".jsonl"})
}

// traced is a trace, with the time at the gateway, by which a page finds out how far its clock is off.
type traced struct {
	journal.Trace
	Now int64 `json:"now"` // epoch milliseconds
}

// trace answers when what came of a turn.
func (n *native) trace(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	after := int64(0)
	if v := r.URL.Query().Get("after"); v != "" {
		var err error
		if after, err = strconv.ParseInt(v, 10, 64); err != nil || after < 0 {
			return server.Errorf(http.StatusBadRequest, server.ReasonInvalid, "after %q is no seq", v)
		}
	}
	t, err := n.gw.Trace(r.Context(), p, r.PathValue("turn"), after)
	if err != nil {
		return err
	}
	server.WriteJSON(w, http.StatusOK, traced{t, time.Now().UnixMilli()})
	return nil
}
