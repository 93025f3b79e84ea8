package native

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/inspection"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/store/journal"
)

// maxMismatch is the largest report of a mismatch in bytes: a few ids and numbers.
const maxMismatch = 4 << 10

// inspect has the routes that inspect turns.
type inspect struct{ turns *inspection.Inspector }

// RegisterInspection adds the routes that inspect turns, and the one for reports of mismatches.
func RegisterInspection(s *server.Server, turns *inspection.Inspector) {
	i := inspect{turns}
	s.HandleAll(server.Authenticated, []server.Route{
		{Method: http.MethodPost, Pattern: "/api/conversations/{id}/mismatches", Handler: i.mismatch, MaxBody: maxMismatch},
		{Method: http.MethodGet, Pattern: "/api/turns/{turn}/trace", Handler: i.trace},
		{Method: http.MethodGet, Pattern: "/api/turns/{turn}/log", Handler: i.logRecording},
		{Method: http.MethodGet, Pattern: "/api/turns/{turn}/recording", Handler: i.recording},
		{Method: http.MethodGet, Pattern: "/api/turns/{turn}/explain", Handler: i.explain},
	})
}

// recording answers GET /api/turns/{turn}/recording: the bytes that a turn exchanged with its agent.
//
// An error before the first byte is an ordinary error response.
func (i inspect) recording(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	turn := r.PathValue("turn")
	return i.turns.WriteRecording(r.Context(), p, turn, &attachment{w: w, name: turn + ".jsonl"})
}

// attachment sets the headers of a download with the first byte. Before that, the handler can still answer with an
// error. Each of its writes goes to the client at once, so a large recording isn't kept in memory.
type attachment struct {
	w         http.ResponseWriter
	name      string
	hasHeader bool
}

func (a *attachment) Write(b []byte) (int, error) {
	if !a.hasHeader {
		a.hasHeader = true
		h := a.w.Header()
		h.Set("Content-Type", "application/x-ndjson")
		h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", a.name))
	}
	return a.w.Write(b)
}

// explain answers GET /api/turns/{turn}/explain: the recording of a turn, with the events that each frame produced.
// It is computed for each request by decoding the recording again, so it shows what the current decoders do.
func (i inspect) explain(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	x, err := i.turns.Explain(r.Context(), p, r.PathValue("turn"))
	return server.Respond(w, x, err)
}

// logRecording answers GET /api/turns/{turn}/log: the events that the log has of a turn, as a recording.
func (i inspect) logRecording(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	turn := r.PathValue("turn")
	return i.turns.WriteLogRecording(r.Context(), p, turn, &attachment{w: w, name: turn + ".jsonl"})
}

// traceResponse is a trace with the gateway's time, from which a page computes the difference between the two clocks.
type traceResponse struct {
	journal.Trace
	Time int64 `json:"now"` // epoch milliseconds
}

// trace answers GET /api/turns/{turn}/trace: when each event of a turn was received, committed and sent.
//
// The parameter after leaves out the events up to a seq, so a page that shows a running turn reads only
// what is new.
func (i inspect) trace(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	after := int64(0)
	if v := r.URL.Query().Get("after"); v != "" {
		var err error
		if after, err = strconv.ParseInt(v, 10, 64); err != nil || after < 0 {
			return server.Invalid("invalid after %q: send the seq of an event", v)
		}
	}
	t, err := i.turns.Trace(r.Context(), p, r.PathValue("turn"), after)
	return server.Respond(w, traceResponse{t, time.Now().UnixMilli()}, err)
}

// mismatch answers POST /api/conversations/{id}/mismatches: a client reports that its copy of a message differs from the log.
//
// A mismatch means that a client applied the events in another way than the gateway did, which is a bug in
// one of them. The report is counted and logged, and it changes nothing.
func (i inspect) mismatch(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var m inspection.Mismatch
	if err := server.DecodeStrict(r, &m); err != nil {
		return err
	}
	if err := i.turns.Mismatch(r.Context(), p, r.PathValue("id"), m); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
