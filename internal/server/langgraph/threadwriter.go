package langgraph

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/server/internal/chats"
	"github.com/leat-dev/leat/transcript"
)

// threadWriter turns the operations of one turn into events of the thread stream.
//
// It gets each operation of the log by itself, and sends what the operation changes. So the events are the same for all clients.
type threadWriter struct {
	sub  *subscription
	turn string
	// prelude reads what the thread contained when the turn began. It is read when it is needed.
	prelude func() (*prelude, error)
	pre     *prelude // nil before that

	run string // id of the current run
	seq int64  // of the current operation in the log
	at  int64  // its time in epoch milliseconds
	n   int64  // events of the current operation
	// isWaiting is true from the first open question to the last answer.
	isWaiting bool

	drafts  []*draft            // in the order of their beginning
	cells   map[partKey]*cell   // by part
	newest  map[string]*draft   // by message of Leat
	lastAdd map[string]partKind // by message of Leat: its last part

	buf []byte
	err error
}

type partKind = event.PartKind

// partKey identifies a part within a turn.
type partKey struct{ message, part string }

// draft is what the client has of a message.
type draft struct {
	id, message string
	cells       []*cell
	isOpen      bool // can grow
	opens       int  // how often it was begun
	lane        int  // that no other open message has
}

// cell is what the client has of a part, which is a block of a message.
type cell struct {
	key   partKey
	draft *draft
	index int
	// isBegun is true if the client has the block, and isDone if it has the whole part.
	isBegun, isDone bool
	content         string // the client's text or input
	output          string // the client's output of a tool
	isCalled        bool   // the client has all input of a tool
	hasResult       bool   // and its result
}

func newThreadWriter(sub *subscription, turn string, load func() (*prelude, error)) *threadWriter {
	return &threadWriter{
		sub: sub, turn: turn, run: turn, prelude: load,
		cells: map[partKey]*cell{}, newest: map[string]*draft{}, lastAdd: map[string]partKind{},
	}
}

// take returns the events so far, which the next call overwrites.
func (w *threadWriter) take() []byte {
	b := w.buf
	w.buf = w.buf[:0]
	return b
}

// emit appends an event if the client wants it and doesn't have it. The name is that of custom data, or the node of a message.
func (w *threadWriter) emit(method, id, name string, data any) {
	// The last number stands for all further events, of which a client could only lose some if it asks for those since one of them.
	e := threadEvent{Type: "event", ID: id, Seq: w.seq<<seqShift | min(w.n, 1<<seqShift-1), Method: method}
	w.n++
	if w.err != nil || !w.sub.has(method, name) || w.sub.Since != nil && e.Seq <= *w.sub.Since {
		return
	}
	e.Params = eventParams{Namespace: []string{}, Timestamp: w.at, Data: data}
	switch method {
	case methodMessages:
		e.Params.Node = name
	case methodTools:
		e.Params.Node = toolsNode
	}
	w.buf, w.err = e.append(w.buf)
}

// seqText is the seq of the current operation as part of an event's id.
func (w *threadWriter) seqText() string { return strconv.FormatInt(w.seq, 10) }

// apply takes an operation, which was the last one that was applied to a.
func (w *threadWriter) apply(a *answer.Answer, op *answer.Op) error {
	w.seq, w.at, w.n = op.Seq, op.At, 0
	switch op.Type {
	case event.TurnStart:
		w.begin(a, w.turn)
	case event.TurnWait:
		w.wait(a, op.Get().Request)
	case event.TurnResume:
		w.begin(a, runID(w.turn, op.Number))
	case event.PartStart, event.PartAppend, event.PartReplace, event.PartUpdate, event.PartEnd:
		w.syncPart(a, partKey{op.Message, op.Part})
	case event.MessageAdd, event.MessageEnd:
		w.syncMessages(a, func(m *transcript.Message) bool { return m.ID == op.Message })
		w.finish(nil, func(d *draft) bool { return d.message == op.Message })
	case event.TurnEnd:
		w.end(a)
	}
	return w.err
}

// lifecycle sends what the run does. The id names the run, so that clients know whose end it is.
func (w *threadWriter) lifecycle(d lifecycleData) {
	w.emit(methodLifecycle, "synth:"+w.run+":"+d.Event, "", d)
}

// begin begins a run: the turn starts, or continues after an answer. If other questions are still open, the run ends at once.
func (w *threadWriter) begin(a *answer.Answer, run string) {
	w.run = run
	w.lifecycle(lifecycleData{Event: "running", Graph: w.agent(a)})
	w.values(a)
	if turn := a.Turn(); turn != nil && len(turn.Requests) > 0 {
		w.lifecycle(lifecycleData{Event: statusInterrupted})
		return
	}
	w.isWaiting = false
}

// agent returns the name of the turn's agent.
func (w *threadWriter) agent(a *answer.Answer) string {
	if turn := a.Turn(); turn != nil {
		return turn.Agent
	}
	return ""
}

// wait ends the run with a question. Another question while the turn waits already only adds to it.
func (w *threadWriter) wait(a *answer.Answer, r *event.Request) {
	w.finish(nil, func(*draft) bool { return true })
	w.values(a)
	i := interruptOf(w.turn, a.Messages(), r)
	w.emit(methodInput, "asked:"+i.ID, "", inputData{i.ID, i.Value})
	if !w.isWaiting {
		w.isWaiting = true
		w.lifecycle(lifecycleData{Event: statusInterrupted})
	}
}

// end ends the last run of the turn.
func (w *threadWriter) end(a *answer.Answer) {
	turn := a.Turn()
	w.syncMessages(a, func(*transcript.Message) bool { return true })
	w.finish(usageOf(turn), func(*draft) bool { return true })
	w.values(a)
	if list := answerMessages(a, true); len(list) > 0 {
		w.emit(methodUpdates, "updates:"+w.seqText(), "", updatesData{node, &values{Messages: list}})
	}
	switch turn.Outcome {
	case event.Completed:
		w.lifecycle(lifecycleData{Event: "completed"})
	case event.Cancelled:
		w.lifecycle(lifecycleData{Event: statusInterrupted})
	default:
		w.lifecycle(lifecycleData{Event: "failed", Error: chats.FailureText(turn, textInterrupted)})
	}
}

// usageOf returns the tokens that a turn has used, or nil.
func usageOf(turn *transcript.Turn) *usage {
	if turn == nil || turn.Usage == nil {
		return nil
	}
	u := turn.Usage
	return &usage{u.Input, u.Output, u.Input + u.Output}
}

// answerMessages returns the messages of an answer.
func answerMessages(a *answer.Answer, withGrowing bool) (list []message) {
	for _, m := range a.Messages() {
		list = appendMessages(list, m, withGrowing)
	}
	return list
}

// values sends the state of the thread, with the checkpoint that it has.
func (w *threadWriter) values(a *answer.Answer) {
	if w.err != nil || !w.sub.has(methodValues, "") && !w.sub.has(methodCheckpoints, "") {
		w.n += 2 // the numbers of events don't depend on the client
		return
	}
	if w.pre == nil {
		if w.pre, w.err = w.prelude(); w.err != nil {
			return
		}
	}
	c := checkpointData{ID: checkpointID(w.seq), Step: w.seq, Source: "loop"}
	if w.pre.parent > 0 {
		c.Parent = checkpointID(w.pre.parent)
	}
	w.emit(methodCheckpoints, "checkpoint:"+w.seqText(), "", c)
	// What grows is sent as a message. A state with it would be an old one for the client, at once.
	w.emit(methodValues, "values:"+w.seqText(), "", values{Messages: emptyList(w.pre.with(a.Messages(), true))})
}

// syncMessages sends what the client lacks of some messages.
func (w *threadWriter) syncMessages(a *answer.Answer, isMeant func(*transcript.Message) bool) {
	for _, m := range a.Messages() {
		if !isMeant(m) {
			continue
		}
		for _, p := range m.Parts {
			w.syncPart(a, partKey{m.ID, p.ID})
		}
	}
}

// cellOf returns the cell of a part, which it adds to the message that the part belongs to: see [groupsOf].
func (w *threadWriter) cellOf(k partKey, p *transcript.Part) *cell {
	if c := w.cells[k]; c != nil {
		return c
	}
	d := w.newest[k.message]
	if d == nil || !continues(w.lastAdd[k.message], p.Kind) {
		d = &draft{id: groupID(k.message, k.part, d == nil), message: k.message}
		w.drafts, w.newest[k.message] = append(w.drafts, d), d
	}
	w.lastAdd[k.message] = p.Kind
	c := &cell{key: k, draft: d, index: len(d.cells)}
	d.cells, w.cells[k] = append(d.cells, c), c
	return c
}

// partOf returns a part of the agent, or nil.
func partOf(a *answer.Answer, k partKey) *transcript.Part {
	for _, m := range slices.Backward(a.Messages()) {
		if m.ID == k.message && m.Role == event.Assistant {
			return m.Part(k.part)
		}
	}
	return nil
}

// syncPart sends what the client lacks of a part.
func (w *threadWriter) syncPart(a *answer.Answer, k partKey) {
	p := partOf(a, k)
	if p == nil {
		return
	}
	c := w.cellOf(k, p)
	switch p.Kind {
	case event.KindText, event.KindReasoning, event.KindStatus:
		w.syncText(a, c, p)
	case event.KindTool:
		w.syncTool(a, c, p)
	default:
		w.syncWhole(a, c, p)
	}
	w.finishComplete(k.message)
}

// finishComplete finishes the messages for a message of Leat that have everything and are not the last one, which can get more parts.
func (w *threadWriter) finishComplete(id string) {
	w.finish(nil, func(d *draft) bool {
		return d.message == id && d != w.newest[id] && !slices.ContainsFunc(d.cells, func(c *cell) bool { return c.isBegun && !c.isDone && !c.isCalled })
	})
}

// message sends an event of a message.
func (w *threadWriter) message(d *draft, id string, data messageData) {
	data.Run = d.id
	w.emit(methodMessages, id, d.node(), data)
}

// open begins a message, or begins it again after it was finished: then with everything that the client has, because it forgets a finished message.
func (w *threadWriter) open(a *answer.Answer, d *draft) {
	if d.isOpen {
		return
	}
	for d.lane = 0; slices.ContainsFunc(w.drafts, func(other *draft) bool { return other.isOpen && other.lane == d.lane }); {
		d.lane++
	}
	d.isOpen = true
	d.opens++
	w.message(d, d.eventID("start"), messageData{Event: "message-start", Role: typeAI, ID: d.id})
	for _, c := range d.cells {
		if !c.isBegun {
			continue
		}
		b := c.block(partOf(a, c.key))
		w.message(d, d.eventID("block", c), messageData{Event: "content-block-start", Index: &c.index, Content: b})
		if c.isDone || c.isCalled {
			w.message(d, d.eventID("done", c), messageData{Event: "content-block-finish", Index: &c.index, Content: b})
		}
	}
}

// toolsNode is the node that has the results of tools.
const toolsNode = "tools"

// node returns the node of a message. Clients before 1.12 assemble one message of a node at a time, so messages that grow at the same time have
// different ones.
func (d *draft) node() string {
	switch d.lane {
	case toolsLane:
		return toolsNode
	case 0:
		return node
	}
	return node + "-" + strconv.Itoa(d.lane+1)
}

// toolsLane is the lane of results.
const toolsLane = -1

// eventID returns the id of an event that each message has once each time that it is begun.
func (d *draft) eventID(kind string, cells ...*cell) string {
	id := kind + ":" + d.id + ":" + strconv.Itoa(d.opens)
	for _, c := range cells {
		id += ":" + strconv.Itoa(c.index)
	}
	return id
}

// block returns a part as the client has it.
func (c *cell) block(p *transcript.Part) *block {
	switch p.Kind {
	case event.KindText, event.KindStatus:
		return &block{Type: "text", Text: &c.content}
	case event.KindReasoning:
		return &block{Type: "reasoning", Reasoning: &c.content}
	case event.KindTool:
		b := &block{Type: "tool_call_chunk", ID: callID(c.key.message, p), Name: chats.ToolName(p), Args: jsonOf(c.content)}
		if c.isCalled {
			b.Type, b.Args = "tool_call", argsOf(p)
		}
		return b
	}
	b, _ := blockOf(p) // it had content when the cell was begun
	return &b
}

// finish finishes messages that can grow. The last one gets what the turn has used.
func (w *threadWriter) finish(u *usage, isMeant func(*draft) bool) {
	var open []*draft
	for _, d := range w.drafts {
		if d.isOpen && isMeant(d) {
			open = append(open, d)
		}
	}
	for i, d := range open {
		d.isOpen = false
		data := messageData{Event: "message-finish", Reason: "stop"}
		if i == len(open)-1 {
			data.Usage = u
		}
		w.message(d, d.eventID("finish"), data)
	}
}

// custom sends data of the agent.
func (w *threadWriter) custom(c *cell, p *transcript.Part) {
	if p.Kind == event.KindData || p.Kind == event.KindStatus {
		data := customOf(p)
		w.emit(methodCustom, w.customID(c), data.Name, data)
	}
}

// customOf returns data or a status as custom data.
func customOf(p *transcript.Part) customData {
	if p.Kind == event.KindStatus {
		return customData{"status", jsonOf(statusInfo{p.Text(event.Text), statusState(p)})}
	}
	return customData{cmp.Or(p.Name, "data"), p.Data}
}

// statusInfo is a status as custom data.
type statusInfo struct {
	Text  string `json:"text"`
	State string `json:"state"` // running or done
}

// customID returns the id of an event with data of a part.
func (w *threadWriter) customID(c *cell) string {
	return "custom:" + c.key.message + "." + c.key.part + ":" + w.seqText()
}
