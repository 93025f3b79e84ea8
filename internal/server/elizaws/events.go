package elizaws

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/service/signals"
)

const (
	// defaultEvents and maxEvents are how many events one answer holds.
	defaultEvents = 200
	maxEvents     = 1000
	// maxLines bounds the body of POST /api/signals, in bytes; maxSignals its lines.
	maxLines   = 4 << 20
	maxSignals = 1000
)

// events answers GET /api/agent/events: what is kept of agent events and heartbeats, for clients that fill gaps.
func (s *surface) events(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	q := r.URL.Query()
	limit := clampLimit(q.Get("limit"))
	from := int64(-1)
	if v := q.Get("fromSeq"); v != "" {
		var err error
		if from, err = strconv.ParseInt(v, 10, 64); err != nil || from < 0 {
			return server.Errorf(http.StatusBadRequest, server.ReasonInvalid, `Invalid "fromSeq" filter.`)
		}
	}
	run := q.Get("runId")
	all, _ := s.opt.Signals.After(0)
	seen := map[string]bool{}
	total, begin := 0, 0
	after, known := signals.ParseID(q.Get("after"))
	known = known && after <= s.opt.Signals.Head() // one above it was of another gateway, or of this one before its data went
	var chosen []signals.Entry
	for _, e := range all {
		if e.Type == signals.TrainingEvent {
			continue
		}
		may, asked := seen[e.Conversation]
		if !asked {
			var err error
			if may, err = s.sees(r.Context(), p, e.Conversation); err != nil {
				return err
			}
			seen[e.Conversation] = may
		}
		if !may {
			continue
		}
		total++
		if run != "" && e.RunID != run || from >= 0 && (e.Seq == nil || *e.Seq < from) {
			continue
		}
		chosen = append(chosen, e)
		if known && e.N <= after {
			begin = len(chosen) // an id that is kept no more leaves it at the beginning
		}
	}
	chosen = chosen[begin:]
	chosen = chosen[:min(limit, len(chosen))]
	answer := struct {
		Events   []json.RawMessage `json:"events"`
		Latest   *string           `json:"latestEventId"`
		Total    int               `json:"totalBuffered"`
		Replayed bool              `json:"replayed"`
	}{Events: []json.RawMessage{}, Total: total, Replayed: true}
	for _, e := range chosen {
		answer.Events = append(answer.Events, e.JSON)
		id := signals.ID(e.N)
		answer.Latest = &id
	}
	server.WriteJSON(w, http.StatusOK, answer)
	return nil
}

// clampLimit returns the limit that a client means. Eliza's server refuses none, so its clients may send any.
func clampLimit(v string) int {
	n, err := strconv.ParseInt(v, 10, 64)
	if errors.Is(err, strconv.ErrSyntax) {
		return defaultEvents
	}
	return int(min(max(n, 1), maxEvents)) // a number out of range is the nearest one that is in it
}

// sent is a signal as clients send it.
type sent struct {
	Type       string          `json:"type"`
	Stream     string          `json:"stream"`
	Data       json.RawMessage `json:"data"`
	Payload    json.RawMessage `json:"payload"`
	RunID      string          `json:"runId"`
	Seq        *int64          `json:"seq"`
	SessionKey string          `json:"sessionKey"`
	AgentID    string          `json:"agentId"`
	RoomID     string          `json:"roomId"`
}

// signal is what it becomes, if p may say it.
func (s *surface) signal(ctx context.Context, p gateway.Principal, in *sent, payload json.RawMessage) (signals.Signal, error) {
	out := signals.Signal{
		Type: in.Type, Stream: in.Stream, RunID: in.RunID, Seq: in.Seq, SessionKey: in.SessionKey, AgentID: in.AgentID, Conversation: in.RoomID, Payload: payload,
	}
	if in.RoomID == "" {
		return out, gateway.Decide(p, gateway.ActionAdmin, nil) // nobody else would see it
	}
	_, err := s.gw.Conversation(ctx, p, gateway.ActionAgent, in.RoomID)
	return out, err
}

// publish answers POST /api/agent/event.
func (s *surface) publish(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var in sent
	if err := server.Decode(r, &in); err != nil {
		return err
	}
	in.Stream = strings.TrimSpace(in.Stream)
	if in.Stream == "" {
		return server.Errorf(http.StatusBadRequest, server.ReasonInvalid, "stream is required")
	}
	in.Type = signals.AgentEvent
	sp, room := speechOf(&in), ""
	if sp != nil {
		var err error
		if room, err = s.room(r.Context(), p, in.RoomID); err != nil {
			return err
		}
		if !p.Admin { // what names no room is the admin's alone
			if in.RoomID = room; room == "" {
				return errNowhere
			}
		}
	}
	sig, err := s.signal(r.Context(), p, &in, in.Data)
	if err != nil {
		return err
	}
	if err := sig.Check(); err != nil {
		return fault(err, "")
	}
	out := published{OK: true}
	if room != "" {
		out.Conversation = room
		if out.Message, err = s.say(r.Context(), p, room, r.Header.Get("Idempotency-Key"), sp); err != nil {
			return err
		}
	}
	n, err := s.opt.Signals.Publish(r.Context(), sig)
	if err != nil {
		return fault(err, "")
	}
	out.ID = signals.ID(n)
	server.WriteJSON(w, http.StatusOK, out)
	return nil
}

// publishMany answers POST /api/signals: a signal a line, all of them or none.
func (s *surface) publishMany(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return err
		}
		return server.Errorf(http.StatusBadRequest, server.ReasonInvalid, "the body was not sent whole")
	}
	var all []signals.Signal
	n := 0
	for line := range bytes.Lines(body) {
		n++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if len(all) == maxSignals {
			return server.Errorf(http.StatusRequestEntityTooLarge, server.ReasonTooLarge, "more than %d signals at once", maxSignals)
		}
		var in sent
		if err := server.Unmarshal(line, &in, false); err != nil {
			return server.Errorf(http.StatusBadRequest, server.ReasonInvalid, "line %d: %s", n, server.Describe(err).Message)
		}
		sig, err := s.signal(r.Context(), p, &in, in.Payload)
		if err != nil {
			return err
		}
		if err := sig.Check(); err != nil {
			return fault(err, "line "+strconv.Itoa(n)+": ")
		}
		all = append(all, sig)
	}
	last, err := s.opt.Signals.Publish(r.Context(), all...)
	if err != nil {
		return fault(err, "")
	}
	answer := struct {
		OK       bool   `json:"ok"`
		Accepted int    `json:"accepted"`
		Last     string `json:"lastEventId,omitempty"`
	}{OK: true, Accepted: len(all)}
	if len(all) > 0 {
		answer.Last = signals.ID(last)
	}
	server.WriteJSON(w, http.StatusOK, answer)
	return nil
}

// fault says what is told of a signal that was not written.
func fault(err error, where string) error {
	switch {
	case errors.Is(err, signals.ErrInvalid):
		return server.Errorf(http.StatusBadRequest, server.ReasonInvalid, "%s%v", where, err)
	case errors.Is(err, signals.ErrGone):
		return gateway.ErrNotFound
	}
	return errors.Join(gateway.ErrUnavailable, err)
}
