// A run as one client has it, and the events for what the client doesn't have.

package openclaw

import (
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// run is what a client has of a turn.
type run struct {
	s        *session
	id, turn string
	firstSeq int64 // of the turn's first event in the log
	logSeq   int64 // of the log at the last update
	seq      int64 // of the last event that was sent
	isBegun  bool
	isEnded  bool

	text     string // the visible text
	thinking string
	parts    map[string]*sentPart
	requests map[string]event.RequestKind // the open ones

	queue []queued // what an update has collected so far
}

// sentPart is what a client has of a part: its text, or the output of a tool.
type sentPart struct {
	text             string
	isBegun, isEnded bool // only of a tool
}

func newRun(s *session, t *transcript.Transcript, turn *transcript.Turn) *run {
	return &run{
		s: s, id: runID(t, turn), turn: turn.ID, firstSeq: turn.FirstSeq, parts: map[string]*sentPart{}, requests: map[string]event.RequestKind{},
	}
}

// seqsPerEvent is by how much the numbers of a run's events may grow with one event of the log.
const seqsPerEvent = 8

// next returns the number of the next event. Clients drop events whose number isn't above the last one, also after they have reconnected, so
// it grows with the log.
func (r *run) next() int64 {
	r.seq = max(r.seq+1, (r.logSeq-r.firstSeq)*seqsPerEvent)
	return r.seq
}

// chat queues a chat event.
func (r *run) chat(e chatEvent, size int) {
	e.RunID, e.SessionKey, e.AgentID, e.Seq = r.id, r.s.key.full, r.s.key.agent, r.next()
	r.queue = append(r.queue, queued{"chat", e, size})
}

// agent queues an agent event.
func (r *run) agent(stream string, at int64, data any, size int) {
	r.queue = append(r.queue, queued{"agent", agentEvent{
		RunID: r.id, SessionKey: r.s.key.full, AgentID: r.s.key.agent, SessionID: r.s.conversation, Stream: stream, Data: data, Seq: r.next(), TS: at,
	}, size})
}

// flush returns the queued events.
func (r *run) flush() []queued {
	queue := r.queue
	r.queue = nil
	return queue
}

// update returns the events for what has changed in a turn.
func (r *run) update(t *transcript.Transcript, turn *transcript.Turn) []queued {
	r.logSeq = t.Seq
	if !r.isBegun && turn.StartedAt != 0 {
		r.isBegun = true
		r.agent("lifecycle", turn.StartedAt, lifecycle{Phase: "start", StartedAt: turn.StartedAt}, 0)
	}
	r.closeRequests(turn)
	text := r.visible(t, turn)
	r.syncParts(t, turn, text)
	r.sendText(text, turn)
	r.openRequests(turn)
	if !turn.Unfinished() {
		r.end(turn)
	}
	return r.flush()
}

// end queues the events at the end of a turn.
func (r *run) end(turn *transcript.Turn) {
	r.isEnded = true
	life := lifecycle{Phase: "end", StartedAt: turn.StartedAt, EndedAt: turn.EndedAt}
	e := chatEvent{State: "final", StopReason: "stop", Usage: usageOf(turn.Usage)}
	if r.text != "" {
		e.Message = r.answer(r.text, turn)
	}
	switch turn.Outcome {
	case event.Completed:
		if turn.Reason == "length" || turn.Reason == "max_tokens" {
			e.StopReason = "length"
		}
	case event.Cancelled:
		life.Status, life.Aborted = "cancelled", true
		e.State, e.StopReason = "aborted", "rpc"
	default:
		text := errorOf(turn)
		life.Phase, life.Error = "error", text
		e.State, e.StopReason, e.ErrorMessage, e.ErrorKind = "error", "error", text, errorKind(turn)
	}
	r.agent("lifecycle", turn.EndedAt, life, 0)
	r.chat(e, len(r.text))
}

// remove returns the events for a turn that is no longer in the conversation.
func (r *run) remove() []queued {
	for id, kind := range r.requests {
		r.closeRequest(id, kind, false)
	}
	r.chat(chatEvent{State: "aborted", StopReason: "rpc"}, 0)
	return r.flush()
}

// errorOf returns why a turn failed, as a sentence for the user.
func errorOf(turn *transcript.Turn) string {
	switch {
	case turn.Error != nil && turn.Error.Message != "":
		return turn.Error.Message
	case turn.Outcome == event.Interrupted:
		return "The answer was interrupted. Send the message again."
	}
	return "The agent could not answer."
}

// errorKind returns the protocol's kind of a failure.
func errorKind(turn *transcript.Turn) string {
	code := ""
	if turn.Error != nil {
		code = strings.ToLower(turn.Error.Code)
	}
	switch {
	case strings.Contains(code, "rate_limit"), strings.HasPrefix(code, "429"):
		return "rate_limit"
	case strings.Contains(code, "timeout"):
		return "timeout"
	case strings.Contains(code, "context_length"):
		return "context_length"
	}
	return "unknown"
}
