// The agent events and heartbeats of Eliza's protocol: publishing them, and fetching those that a client has missed.

package elizaws

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/service/signals"
)

const (
	// defaultEvents and maxEvents are the default and the largest number of events in a response.
	defaultEvents = 200
	maxEvents     = 1000
	// maxLines is the largest body of POST /api/signals in bytes, and maxSignals the largest number of its lines.
	maxLines   = 4 << 20
	maxSignals = 1000
)

// events answers GET /api/agent/events: the stored agent events and heartbeats, with which clients fill gaps.
//
// The filters are applied in this order: permission, run and seq, then the cursor and the limit.
// totalBuffered counts everything that the caller may see, before the other filters. Training events are
// excluded, as in Eliza. The limit keeps the oldest events, so a client can fetch a long gap in several
// requests.
func (s *surface) events(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	q := r.URL.Query()
	limit := clampLimit(q.Get("limit"))
	from := int64(-1)
	if v := q.Get("fromSeq"); v != "" {
		var err error
		if from, err = strconv.ParseInt(v, 10, 64); err != nil || from < 0 {
			return server.Invalid(`Invalid "fromSeq" filter.`)
		}
	}
	run := q.Get("runId")
	entries, _ := s.Signals.After(0)
	visible := s.visibility(r.Context(), p)
	total, begin := 0, 0
	after, isKnown := signals.ParseID(q.Get("after"))
	isKnown = isKnown && after <= s.Signals.Head() // a larger id is of another gateway, or older than this data folder
	var selected []signals.Entry
	for _, e := range entries {
		if e.Type == signals.TrainingEvent {
			continue
		}
		may, err := visible(e.Conversation)
		if err != nil {
			return err
		}
		if !may {
			continue
		}
		total++
		if run != "" && e.RunID != run || from >= 0 && (e.Seq == nil || *e.Seq < from) {
			continue
		}
		selected = append(selected, e)
		if isKnown && e.N <= after {
			begin = len(selected) // if the id of after is no longer stored, the response starts at the oldest event
		}
	}
	selected = selected[begin:]
	selected = selected[:min(limit, len(selected))]
	answer := struct {
		Events   []json.RawMessage `json:"events"`
		Latest   *string           `json:"latestEventId"`
		Total    int               `json:"totalBuffered"`
		Replayed bool              `json:"replayed"`
	}{Events: []json.RawMessage{}, Total: total, Replayed: true}
	for _, e := range selected {
		answer.Events = append(answer.Events, e.JSON)
		id := signals.ID(e.N)
		answer.Latest = &id
	}
	return server.Respond(w, answer, nil)
}

// clampLimit returns the limit nearest to v. Like Eliza's server, it refuses no value.
func clampLimit(v string) int {
	n, err := strconv.ParseInt(v, 10, 64)
	if errors.Is(err, strconv.ErrSyntax) {
		return defaultEvents
	}
	return int(min(max(n, 1), maxEvents)) // if v is out of range, ParseInt returns the nearest value
}

// signalBody is a signal as clients send it.
type signalBody struct {
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

// signal converts a client's signal, if p may send it.
func (s *surface) signal(ctx context.Context, p gateway.Principal, in *signalBody, payload json.RawMessage) (signals.Signal, error) {
	converted := signals.Signal{
		Type: in.Type, Stream: in.Stream, RunID: in.RunID, Seq: in.Seq, SessionKey: in.SessionKey, AgentID: in.AgentID, Conversation: in.RoomID, Payload: payload,
	}
	if in.RoomID == "" {
		return converted, gateway.Decide(p, gateway.ActionAdmin, nil) // only the admin sees signals without a conversation
	}
	_, err := s.gw.Conversation(ctx, p, gateway.ActionAgent, in.RoomID)
	return converted, err
}

// publish answers POST /api/agent/event.
//
// An event of an agent can also be a message that the agent writes unasked. Then the message is stored
// first and the event published after it: if the store refuses the message, no socket shows it. A repeated
// request with the same Idempotency-Key stores it once.
func (s *surface) publish(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var in signalBody
	if err := server.Decode(r, &in); err != nil {
		return err
	}
	in.Stream = strings.TrimSpace(in.Stream)
	if in.Stream == "" {
		return server.Invalid("stream is required")
	}
	in.Type = signals.AgentEvent
	sp, room := speechOf(&in), ""
	if sp != nil {
		var err error
		if room, err = s.room(r.Context(), p, in.RoomID); err != nil {
			return err
		}
		if !p.Admin { // an event without a room is visible only to the admin
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
	response := published{OK: true}
	if room != "" {
		response.Conversation = room
		if response.Message, err = s.say(r.Context(), p, room, r.Header.Get("Idempotency-Key"), sp); err != nil {
			return err
		}
	}
	n, err := s.Signals.Publish(r.Context(), sig)
	if err != nil {
		return fault(err, "")
	}
	response.ID = signals.ID(n)
	return server.Respond(w, response, nil)
}

// publishMany answers POST /api/signals, which has one signal per line. It publishes all of them or none.
//
// Every line is checked before the first is published. The error names the line, because an agent may send
// many.
func (s *surface) publishMany(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	body, err := server.ReadBody(r)
	if err != nil {
		return err
	}
	var batch []signals.Signal
	n := 0
	for line := range bytes.Lines(body) {
		n++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if len(batch) == maxSignals {
			return server.Errorf(http.StatusRequestEntityTooLarge, server.ReasonTooLarge, "more than %d signals in one request; send them in several", maxSignals)
		}
		var in signalBody
		if err := server.Unmarshal(line, &in, false); err != nil {
			return server.Invalid("line %d: %s", n, server.Describe(err).Message)
		}
		sig, err := s.signal(r.Context(), p, &in, in.Payload)
		if err != nil {
			return err
		}
		if err := sig.Check(); err != nil {
			return fault(err, "line "+strconv.Itoa(n)+": ")
		}
		batch = append(batch, sig)
	}
	last, err := s.Signals.Publish(r.Context(), batch...)
	if err != nil {
		return fault(err, "")
	}
	answer := struct {
		OK       bool   `json:"ok"`
		Accepted int    `json:"accepted"`
		Last     string `json:"lastEventId,omitempty"`
	}{OK: true, Accepted: len(batch)}
	if len(batch) > 0 {
		answer.Last = signals.ID(last)
	}
	return server.Respond(w, answer, nil)
}

// fault converts an error of the signal log for the client. The prefix precedes the text of an invalid signal.
//
// A failed write of the log is reported as temporary, with the cause for the gateway's own log.
func fault(err error, prefix string) error {
	switch {
	case errors.Is(err, signals.ErrInvalid):
		return server.Invalid("%s%v", prefix, err)
	case errors.Is(err, signals.ErrGone):
		return gateway.ErrNotFound
	}
	return errors.Join(gateway.ErrUnavailable, err)
}
