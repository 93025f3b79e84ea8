package status

import (
	"cmp"
	"encoding/json"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/ratelimit"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/signals"
	"github.com/leat-dev/leat/internal/store/journal"
)

// budget bounds the signals that all turns together publish: a burst of 600, then five a second. The log retains 1,500 signals, so
// many turns that start at once still leave room for the signals of others. One half of the budget is for progress and the other
// for starts and ends, so that progress can't crowd out an end.
var budget = ratelimit.Rate{Tokens: 600, Per: 2 * time.Minute}

const (
	// interval is the minimum time between two progress signals of a turn.
	interval = time.Second
	// maxPreview and maxText bound quoted names and texts, in bytes.
	maxPreview = 160
	maxText    = 2 << 10
	// channel is the default channel, for a turn whose message names none. Clients of Eliza know it by this name.
	channel = "client_chat"
)

// The streams of agent events.
const (
	streamAssistant = "assistant"
	streamTool      = "tool"
	streamThought   = "thought"
	streamLifecycle = "lifecycle"
	streamApproval  = "approval"
)

// publisher accepts signals without blocking. [signals.Log] implements it.
type publisher interface{ Offer(signals.Signal) }

// Turns publishes signals about running turns: agent events and heartbeats, as Eliza's clients expect them. Make one with
// NewTurns.
type Turns struct {
	log publisher

	mu       sync.Mutex       // protects the fields below
	turns    map[string]*turn // running and queued turns by id
	progress ratelimit.Bucket // for heartbeats and progress
	marks    ratelimit.Bucket // for starts, ends and approvals
}

// turn is a turn that runs or is queued. Its entry is removed with its end.
type turn struct {
	agent        string
	channel      string
	began        time.Time
	lastProgress time.Time // time of the last progress signal
	seq          int64     // number of the last agent event
	replied      bool      // the heartbeat for its first text was sent
	parts        map[partKey]*part
}

// partKey identifies a part of a turn.
type partKey struct{ message, part string }

// part is a part that has not ended. Parts without signals, such as media, have an entry too, until they end.
type part struct {
	kind  event.PartKind
	name  string
	state event.PartState
	text  []byte // the end of the text, up to twice maxText bytes
}

var _ gateway.Watcher = (*Turns)(nil)

// NewTurns returns a watcher that sends signals to log. log must not block, because the writers of conversations wait for the watcher.
func NewTurns(log publisher) *Turns {
	return &Turns{log: log, turns: map[string]*turn{}}
}

// Committed implements [gateway.Watcher]. A commit may contain a user's message and the turn that answers it. source is the channel of the
// last such message, which the turn's heartbeats name.
func (w *Turns) Committed(s *journal.Summary, events []event.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := time.Now()
	source := ""
	for i := range events {
		e := &events[i]
		b := e.Get()
		switch {
		case e.Type == event.MessageAdd && e.Turn == "":
			source = cmp.Or(b.Source, channel)
		case e.Turn == "":
		case e.Type == event.TurnQueue:
			w.of(e.Turn, at).channel = clip([]byte(source), maxPreview)
		case e.Type == event.TurnStart:
			t := w.of(e.Turn, at)
			t.agent, t.began = b.Agent, at
			if source != "" {
				t.channel = clip([]byte(source), maxPreview)
			}
			w.event(s, e.Turn, t, &w.marks, streamLifecycle, map[string]any{"phase": "start"}, at)
			w.heartbeat(s, t, "thinking", "", at)
		case e.Type == event.TurnWait, e.Type == event.TurnResume:
			if t := w.turns[e.Turn]; t != nil {
				w.event(s, e.Turn, t, &w.marks, streamApproval, answerPayload(b), at)
			}
		case e.Type == event.TurnEnd:
			w.end(s, e, at)
		default:
			w.part(s, e, at)
		}
	}
}

// answerPayload returns the payload for an approval request or its answer. The body of turn.wait has a request, that of turn.resume an
// answer.
func answerPayload(b *event.Body) map[string]any {
	if a := b.Answer; a != nil {
		return map[string]any{"phase": "resolved", "requestId": a.ID, "decision": a.Decision}
	}
	r := b.Request
	payload := map[string]any{"phase": "requested", "requestId": r.ID, "kind": r.Kind, "text": clip([]byte(r.Prompt), maxText), "source": channel}
	if r.Tool != "" {
		payload["toolName"] = clip([]byte(r.Tool), maxPreview)
	}
	if len(r.Options) > 0 {
		payload["options"] = r.Options
	}
	return payload
}

// of returns the turn with that id, and adds it if it is missing: a turn is added when it is queued, or when it starts without a queue.
// w.mu must be locked.
func (w *Turns) of(id string, at time.Time) *turn {
	t := w.turns[id]
	if t == nil {
		t = &turn{channel: channel, began: at, parts: map[partKey]*part{}}
		w.turns[id] = t
	}
	return t
}

// part follows the parts of a turn. It publishes progress at most once per interval, and each part's end. The first text of a turn also
// publishes a heartbeat, at which clients change their indicator from thinking to replying. Turns that began before this process are
// ignored, as are parts whose start wasn't seen.
func (w *Turns) part(s *journal.Summary, e *event.Event, at time.Time) {
	t := w.turns[e.Turn]
	if t == nil {
		return
	}
	key := partKey{e.Message, e.Part}
	if e.Type == event.PartStart {
		b := e.Get()
		t.parts[key] = &part{kind: b.Kind, name: b.Name}
	}
	p := t.parts[key]
	if p == nil {
		return
	}
	switch e.Type {
	case event.PartStart:
	case event.PartUpdate:
		p.state = e.Get().State
		return
	case event.PartAppend, event.PartReplace:
		if e.Field != event.Text {
			return
		}
		if e.Type == event.PartReplace {
			p.text = nil
		}
		p.add(e.Text)
	case event.PartEnd:
		delete(t.parts, key)
		if stream, payload := p.tell(true); stream != "" {
			w.event(s, e.Turn, t, &w.marks, stream, payload, at)
		}
		return
	default:
		return
	}
	if p.kind == event.KindText && len(p.text) > 0 && !t.replied {
		t.replied = true
		w.heartbeat(s, t, "replying", clip(p.text, maxPreview), at)
	}
	if at.Sub(t.lastProgress) < interval {
		return
	}
	if stream, payload := p.tell(false); stream != "" {
		t.lastProgress = at
		w.event(s, e.Turn, t, &w.progress, stream, payload, at)
	}
}

// add appends text and drops the oldest bytes. It trims only when twice the limit is reached, so that a small append doesn't
// copy the whole buffer. A text longer than maxText is cut before it is copied.
func (p *part) add(text string) {
	p.text = append(p.text, text[max(0, len(text)-maxText):]...)
	if excess := len(p.text) - maxText; excess > maxText {
		p.text = append(p.text[:0], p.text[excess:]...)
	}
}

// tell returns the stream and the payload of a part's signal. stream is empty if the part has no text yet, or is of a kind without
// signals. The text is the end of the part's text, up to maxText bytes: each signal replaces the one before it.
func (p *part) tell(final bool) (stream string, payload map[string]any) {
	text := tail(p.text, maxText)
	switch p.kind {
	case event.KindText:
		stream = streamAssistant
	case event.KindReasoning:
		stream = streamThought
	case event.KindTool:
		state := event.PartRunning
		if final {
			state = event.PartDone
		}
		return streamTool, map[string]any{"name": p.name, "state": cmp.Or(p.state, state), "final": final}
	default:
		return "", nil
	}
	if text == "" {
		return "", nil
	}
	// The source marks the turn as one of a chat. Clients show it from the chat's own stream and add no message for this signal.
	return stream, map[string]any{"text": text, "source": channel, "final": final}
}

// end publishes the outcome of a turn and removes the turn. The payload has the code of an error but not its text.
func (w *Turns) end(s *journal.Summary, e *event.Event, at time.Time) {
	t := w.turns[e.Turn]
	if t == nil {
		return
	}
	delete(w.turns, e.Turn)
	b := e.Get()
	payload := map[string]any{"phase": "end", "outcome": b.Outcome}
	if b.Outcome == event.Failed {
		payload["phase"] = "error"
	}
	if b.Error != nil {
		payload["code"] = b.Error.Code
	}
	payload["durationMs"] = at.Sub(t.began).Milliseconds()
	w.event(s, e.Turn, t, &w.marks, streamLifecycle, payload, at)
}

// event publishes an agent event if the bucket has a token. It numbers only published events, so that the numbers have no
// gaps.
func (w *Turns) event(s *journal.Summary, id string, t *turn, of *ratelimit.Bucket, stream string, payload map[string]any, at time.Time) {
	if !take(of, at) {
		return
	}
	t.seq++
	seq := t.seq
	w.log.Offer(signals.Signal{
		Type: signals.AgentEvent, Stream: stream, RunID: id, Seq: &seq, AgentID: clip([]byte(t.agent), maxPreview), Conversation: s.ID, Payload: encode(payload),
	})
}

// heartbeat publishes what a turn is doing, for clients that show a typing indicator. The fields of the payload are those of Eliza's
// heartbeats. They use the half of the budget for progress, because a client that misses one only shows an older indicator.
func (w *Turns) heartbeat(s *journal.Summary, t *turn, status, preview string, at time.Time) {
	if !take(&w.progress, at) {
		return
	}
	payload := map[string]any{
		"ts": at.UnixMilli(), "status": status, "to": t.channel, "channel": t.channel, "indicatorType": "typing",
		"durationMs": at.Sub(t.began).Milliseconds(), "hasMedia": false,
	}
	if preview != "" {
		payload["preview"] = preview
	}
	w.log.Offer(signals.Signal{Type: signals.HeartbeatEvent, Conversation: s.ID, Payload: encode(payload)})
}

// take takes a token from one of the two halves of the budget.
func take(b *ratelimit.Bucket, at time.Time) bool {
	_, ok := b.Take(at, ratelimit.Rate{Tokens: budget.Tokens / 2, Per: budget.Per})
	return ok
}

// encode marshals a payload. It panics on an error, which can't happen: payloads consist of strings, numbers and booleans.
func encode(payload map[string]any) json.RawMessage {
	b, err := json.Marshal(payload)
	if err != nil {
		panic(err)
	}
	return b
}

// clip returns the first n bytes of a text on one line, without a partial character at the cut.
func clip(b []byte, n int) string {
	s := strings.ToValidUTF8(string(b[:min(len(b), n)]), "")
	return strings.Join(strings.Fields(s), " ")
}

// tail returns the last n bytes of a text, without a partial character at the cut.
func tail(b []byte, n int) string {
	b = b[max(0, len(b)-n):]
	for len(b) > 0 && !utf8.RuneStart(b[0]) {
		b = b[1:]
	}
	return strings.ToValidUTF8(string(b), "")
}
