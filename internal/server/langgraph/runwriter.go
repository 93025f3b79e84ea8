package langgraph

import (
	"slices"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/server/internal/chats"
	"github.com/leat-dev/leat/transcript"
)

// runWriter turns the operations of one run into the events of a run stream.
//
// The id of an event is the number of its operation, shifted like the seqs of the thread stream, and so a function of the log. Operations before
// the run only tell the writer what the client has, and so do those up to the last event that the client has received.
type runWriter struct {
	modes  map[string]bool
	ref    runRef
	thread string
	last   int64 // id of the last event that the client has, or -1
	load   func() (*prelude, error)
	pre    *prelude // nil before it is needed

	number int64 // of the current operation
	n      int64 // events of the current operation
	// isAsked is true after a question of this run. The run ends before the next operation that isn't another one.
	isAsked bool

	outcome *runOutcome // what the run has led to, if the client waits only for that

	texts map[partKey]*sentPart
	order []string // ids of the messages that the client has, in the order in which it got them
	buf   []byte
	err   error
}

// sentPart is what the client has of a part.
type sentPart struct {
	text      string
	skipped   int // bytes of the text that are in a message of an earlier run
	isBegun   bool
	isEnded   bool // of a status, which is replaced until then
	hasResult bool // of a call
	// isStale is true if the client has text that was taken back, and can't get it right before the state at the end of the run.
	isStale bool
}

func newRunWriter(modes map[string]bool, ref runRef, thread string, last int64, load func() (*prelude, error)) *runWriter {
	return &runWriter{modes: modes, ref: ref, thread: thread, last: last, load: load, texts: map[partKey]*sentPart{}}
}

// take returns the events so far, which the next call overwrites.
func (w *runWriter) take() []byte {
	b := w.buf
	w.buf = w.buf[:0]
	return b
}

// emit appends an event of a mode, if the client wants it and doesn't have it. Events without a mode are for all.
func (w *runWriter) emit(mode, name string, data any) {
	id := w.number<<seqShift | min(w.n, 1<<seqShift-1)
	w.n++
	if w.err != nil || id <= w.last || mode != "" && !w.modes[mode] {
		return
	}
	w.buf, w.err = appendFrame(w.buf, strconv.FormatInt(id, 10), name, data)
}

// metadataData begins a run stream.
type metadataData struct {
	Run     string `json:"run_id"`
	Thread  string `json:"thread_id"`
	Attempt int    `json:"attempt"`
}

// start begins the stream.
func (w *runWriter) start() {
	w.number, w.n = w.ref.number, 0
	w.emit("", "metadata", metadataData{w.ref.id(), w.thread, 1})
}

// apply takes an operation, which was the last one that was applied to a. It returns errPaused when the run has ended with a question.
func (w *runWriter) apply(a *answer.Answer, op *answer.Op) error {
	if op.Number < w.ref.number {
		w.skip(a, op)
		return nil
	}
	if w.isAsked && op.Type != event.TurnWait {
		return errPaused // what follows is of another run
	}
	if w.isAsked {
		return nil
	}
	w.number, w.n = op.Number, 1 // the first number of a run is that of its metadata
	switch op.Type {
	case event.TurnStart, event.TurnResume:
		w.values(a, nil)
		w.isAsked = len(a.Turn().Requests) > 0 // others than the one that was answered
	case event.TurnWait:
		w.isAsked = true
	case event.PartStart, event.PartAppend, event.PartReplace, event.PartUpdate, event.PartEnd:
		w.sync(a, partKey{op.Message, op.Part})
	case event.MessageAdd, event.MessageEnd, event.TurnEnd:
		for _, m := range a.Messages() {
			for _, p := range m.Parts {
				if op.Type == event.TurnEnd || m.ID == op.Message {
					w.sync(a, partKey{m.ID, p.ID})
				}
			}
		}
	}
	if op.Type == event.TurnEnd {
		w.end(a)
	}
	return w.err
}

// skip notes what the client has from earlier runs of the turn.
func (w *runWriter) skip(a *answer.Answer, op *answer.Op) {
	k := partKey{op.Message, op.Part}
	if p := partOf(a, k); p != nil {
		part := w.part(k)
		part.text, part.isBegun, part.hasResult = p.Text(fieldOf(p)), true, p.Kind == event.KindTool && chats.IsComplete(p)
		part.skipped = len(part.text)
	}
}

// fieldOf returns the text of a part that grows.
func fieldOf(p *transcript.Part) event.Field {
	if p.Kind == event.KindTool {
		return event.Input
	}
	return event.Text
}

func (w *runWriter) part(k partKey) *sentPart {
	if w.texts[k] == nil {
		w.texts[k] = &sentPart{}
	}
	return w.texts[k]
}

// flush is called after the operations that were there at once. It returns errPaused when the run has ended with a question.
func (w *runWriter) flush() error {
	if w.isAsked {
		return errPaused
	}
	return w.err
}

// interrupted are the questions in updates.
type interrupted struct {
	Interrupts []interrupt `json:"__interrupt__"`
}

// pause ends the stream of a run with questions. Open are those that wait for an answer now: a client can answer no other.
func (w *runWriter) pause(a *answer.Answer, open []interrupt) error {
	w.n = 2 // other numbers than those of the operation's own events
	w.updates(a)
	w.emit("updates", "updates", interrupted{emptyList(open)})
	w.values(a, open)
	w.emit("", "end", nil)
	return w.err
}

// end ends the stream of a run whose turn has ended.
func (w *runWriter) end(a *answer.Answer) {
	w.updates(a)
	w.values(a, nil)
	turn := a.Turn()
	if turn.Outcome != event.Completed && turn.Outcome != event.Cancelled {
		f := failureOf(turn)
		if w.outcome != nil {
			w.outcome.Error = &f
		}
		w.emit("", "error", f)
		return
	}
	w.emit("", "end", nil)
}

// failure is why a run has failed.
type failure struct {
	Error   string `json:"error"`
	Message string `json:"message"`
}

// failureOf returns why a turn ended without an answer.
func failureOf(turn *transcript.Turn) failure {
	f := failure{string(turn.Outcome), failureText(turn)}
	if turn.Error != nil && turn.Error.Code != "" {
		f.Error = turn.Error.Code
	}
	return f
}

// updates sends the messages of the turn, as the update of the only node.
func (w *runWriter) updates(a *answer.Answer) {
	if list := answerMessages(a, true); len(list) > 0 {
		w.emit("updates", "updates", map[string]values{node: {Messages: list}})
	}
}

// values sends the state of the thread.
func (w *runWriter) values(a *answer.Answer, open []interrupt) {
	if w.err != nil || !w.modes["values"] && w.outcome == nil {
		w.n++
		return
	}
	if w.pre == nil {
		if w.pre, w.err = w.load(); w.err != nil {
			return
		}
	}
	state := values{Messages: emptyList(w.pre.with(a.Messages(), true)), Interrupts: open}
	if w.outcome != nil {
		w.outcome.values = state
	}
	w.emit("values", "values", state)
}

// chunk is a piece of a message. Clients append the contents and the calls of pieces with the same id.
type chunk struct {
	Type       string      `json:"type"` // AIMessageChunk, ai, tool or remove
	ID         string      `json:"id"`
	Content    any         `json:"content"`
	ToolCalls  []toolChunk `json:"tool_call_chunks,omitempty"`
	ToolCallID string      `json:"tool_call_id,omitempty"`
	Name       string      `json:"name,omitempty"`
	Status     string      `json:"status,omitempty"`
	Kwargs     *kwargs     `json:"additional_kwargs,omitempty"`
}

// toolChunk is a piece of a call: its name and id come with the first one.
type toolChunk struct {
	ID    string `json:"id,omitempty"`
	Name  string `json:"name,omitempty"`
	Args  string `json:"args"`
	Index int    `json:"index"`
	Type  string `json:"type"` // tool_call_chunk
}

// contentChunk is a piece of a block. Clients append pieces of blocks with the same index.
type contentChunk struct {
	Type      string `json:"type"`
	Text      string `json:"text,omitempty"`
	Reasoning string `json:"reasoning,omitempty"`
	Index     int    `json:"index"`
}

// chunkMetadata says where a piece comes from.
type chunkMetadata struct {
	Run    string `json:"run_id"`
	Thread string `json:"thread_id"`
	Node   string `json:"langgraph_node"`
}

// piece sends a piece of a message.
func (w *runWriter) piece(c chunk) {
	if !slices.Contains(w.order, c.ID) {
		w.order = append(w.order, c.ID)
	}
	w.emit("messages-tuple", "messages", [2]any{c, chunkMetadata{w.ref.id(), w.thread, node}})
}

// sync sends what the client lacks of a part.
func (w *runWriter) sync(a *answer.Answer, k partKey) {
	p := partOf(a, k)
	if p == nil {
		return
	}
	part := w.part(k)
	g, index := groupWith(a, k)
	id := g.id
	if part.skipped > 0 {
		// What follows an answer is a separate message until the state at the end of the run. The client would append to the message that it has, or
		// to none after a reload.
		id += "~" + strconv.FormatInt(w.ref.number, 10)
	}
	switch p.Kind {
	case event.KindText, event.KindReasoning:
		w.syncText(g, part, p, id, index)
	case event.KindTool:
		w.syncTool(k, part, p, g.id, index)
	default:
		w.syncWhole(g, part, p, id)
	}
	switch {
	case !w.modes["messages"]:
		w.n++
	case g.isGrowing():
		w.emit("messages", "messages/partial", []message{g.message()})
	default:
		w.emit("messages", "messages/complete", []message{g.message()})
	}
}

// groupWith returns the group that a part belongs to, and the part's place in it.
func groupWith(a *answer.Answer, k partKey) (group, int) {
	for _, m := range a.Messages() {
		if m.ID != k.message {
			continue
		}
		for _, g := range groupsOf(m) {
			if i := slices.IndexFunc(g.parts, func(p *transcript.Part) bool { return p.ID == k.part }); i >= 0 {
				return g, i
			}
		}
	}
	return group{}, 0
}

// syncText sends the end of a text.
//
// A text that was taken back is removed and sent as a whole if it is the client's last message. Otherwise the client would put it into the place of
// another one, so it gets the text with the state at the end of the run.
func (w *runWriter) syncText(g group, part *sentPart, p *transcript.Part, id string, index int) {
	text := p.Text(event.Text)
	suffix, isAppended := strings.CutPrefix(text, part.text)
	if !isAppended && !part.isStale {
		isLast := len(w.order) > 0 && w.order[len(w.order)-1] == id && part.skipped == 0 && len(g.parts) == 1
		if suffix = text; isLast {
			w.piece(chunk{Type: "remove", ID: id, Content: ""})
		}
		part.isStale = !isLast
	}
	part.text = text
	if part.isStale || suffix == "" {
		return
	}
	c := chunk{Type: "AIMessageChunk", ID: id, Content: suffix}
	switch {
	case p.Kind == event.KindReasoning:
		c.Content = []contentChunk{{Type: "reasoning", Reasoning: suffix, Index: index}}
	case g.parts[0].Kind == event.KindReasoning:
		c.Content = []contentChunk{{Type: "text", Text: suffix, Index: index}}
	}
	w.piece(c)
}

// syncTool sends the end of a call's arguments, and its result as a message.
func (w *runWriter) syncTool(k partKey, part *sentPart, p *transcript.Part, id string, index int) {
	call := callID(k.message, p)
	input := p.Text(event.Input)
	if chats.HasAllInput(p) && input == "" {
		input = "{}"
	}
	suffix, isAppended := strings.CutPrefix(input, part.text)
	if isAppended && (suffix != "" || !part.isBegun) && !part.isStale {
		t := toolChunk{Args: suffix, Index: index, Type: "tool_call_chunk"}
		if !part.isBegun {
			t.ID, t.Name = call, chats.ToolName(p)
		}
		w.piece(chunk{Type: "AIMessageChunk", ID: id, Content: "", ToolCalls: []toolChunk{t}})
	}
	part.isBegun, part.isStale, part.text = true, part.isStale || !isAppended, input
	if chats.IsComplete(p) && !part.hasResult {
		part.hasResult = true
		m := resultMessage(k.message, p)
		w.piece(chunk{Type: m.Type, ID: m.ID, Content: m.Content, ToolCallID: m.ToolCallID, Name: m.Name, Status: m.Status})
	}
}

// syncWhole sends a status, a file or data as a whole message.
func (w *runWriter) syncWhole(g group, part *sentPart, p *transcript.Part, id string) {
	if g.isEmpty() {
		return
	}
	m := g.message()
	content := string(m.Content)
	hasEnded := p.Kind == event.KindStatus && p.Final && !part.isEnded
	if (p.Kind == event.KindData || p.Kind == event.KindStatus) && (hasEnded || part.text != content) {
		w.emit("custom", "custom", customOf(p))
	}
	part.isEnded = p.Final
	if part.text == content {
		return
	}
	isLast := len(w.order) > 0 && w.order[len(w.order)-1] == id
	if part.isBegun && isLast {
		w.piece(chunk{Type: "remove", ID: id, Content: ""})
	}
	if !part.isBegun || isLast {
		w.piece(chunk{Type: typeAI, ID: id, Content: m.Content, Kwargs: m.Kwargs})
	}
	part.isBegun, part.text = true, content
}
