// From the keys of an upstream to ids within a turn, and from operations to events that are valid for their transcript.

package dialect

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/leat-dev/leat/event"
)

// Mapper turns the operations of one stream, which have upstream keys, into events with ids. It fills in At, Offset and the checksums of
// parts; the log assigns Seq. The ids of parts are "p1", "p2", ... in the order of their start.
//
// The operations of the stream's first upstream turn belong to the Mapper's own turn. Every further upstream turn becomes a turn
// inside it. The Mapper starts that turn before its first operation and ends it, if it is still open, with the turn around it.
//
// Operations of an ended turn are dropped and counted, and so are operations without effect, such as a second start or an append after
// the end of its part. These are errors that wrap [event.ErrInvalid]: an operation on something that was never started, an operation
// whose event [event.Event.Validate] rejects, and one that starts more turns, messages and parts than the limit allows. The limit keeps
// the state small, because the state has all of the keys.
//
// A Mapper is pure and not safe for concurrent use.
type Mapper struct {
	// Flat makes further upstream turns siblings of the first instead of nested turns, and removes the limit of keys. It is for
	// recordings of a whole connection. Set it before the first call of Map.
	Flat bool
	// DroppedOps is the number of dropped operations.
	DroppedOps int64

	id    string // of the Mapper's own turn
	newID func() string
	turns []*mappedTurn // the first is the Mapper's own; it may have no key yet
	msgs  []*mappedMessage
	keys  int // the number of keys of turns, messages and parts

	// The arguments and the result of the current call of Map.
	at     int64
	mapped []event.Event
}

// maxKeys is the limit of turns, messages and parts together in a turn. It is above the limits that dialects set for a turn of one message.
const maxKeys = 16_384

// room returns an error if n more keys would exceed maxKeys.
func (m *Mapper) room(n int) error {
	if m.keys+n > maxKeys && !m.Flat {
		return fmt.Errorf("%w: more than %d turns, messages and parts in a turn", event.ErrInvalid, maxKeys)
	}
	return nil
}

// mappedMessage is a message that was started. Its parts remain known after their end, because an agent may retract them.
type mappedMessage struct {
	turn, key, id string // turn is an id
	parts         []*mappedPart
	isOver        bool
}

// mappedPart is a part of a message. Its id follows from its index.
type mappedPart struct {
	key    string
	kind   event.PartKind
	isOver bool
	sums   [4]event.Sum // length and checksum of each text so far, by index of transcript.Fields
}

// NewMapper returns a mapper of one stream into the turn with the given id. newID generates the ids of messages and further turns.
func NewMapper(turn string, newID func() string) *Mapper {
	return &Mapper{id: turn, newID: newID, turns: []*mappedTurn{{id: turn}}}
}

// Map returns the events of operations that arrived at the time at, in epoch milliseconds. With an error it returns the
// events of the operations before the invalid one. It doesn't change ops.
func (m *Mapper) Map(ops []event.Event, at int64) ([]event.Event, error) {
	m.at = at
	m.mapped = make([]event.Event, 0, len(ops))
	defer func() { m.mapped = nil }()
	for i := range ops {
		if err := m.op(&ops[i]); err != nil {
			return m.mapped, fmt.Errorf("map %s: %w", ops[i].Type, err)
		}
	}
	return m.mapped, nil
}

// End records that the turn with this id has ended for another reason than its stream, for example because a user stopped it. Map drops its
// operations from then on.
func (m *Mapper) End(turn string) {
	for _, t := range m.turns {
		if t.id == turn {
			t.isOver = true
		}
	}
}

// op maps one operation. After the end of the Mapper's own turn it drops everything, also what belongs to further turns, because those ended
// with it.
func (m *Mapper) op(op *event.Event) error {
	if m.turns[0].isOver && !m.Flat {
		m.DroppedOps++
		return nil
	}
	t, err := m.turn(op)
	if err != nil {
		return err
	}
	if t.isOver {
		m.DroppedOps++
		return nil
	}
	switch op.Type {
	case event.TurnQueue, event.TurnStart:
		return m.begin(t, op)
	case event.TurnEnd:
		return m.end(t, op)
	case event.TurnWait:
		return m.wait(t, op)
	case event.TurnUpdate, event.TurnResume, event.ConversationUpdate, event.Record:
		return m.add(m.event(t, op))
	case event.MessageAdd, event.MessageStart:
		return m.start(t, op)
	case event.MessageUpdate, event.MessageEnd:
		return m.message(t, op)
	case event.PartStart, event.PartAppend, event.PartReplace, event.PartUpdate, event.PartEnd:
		return m.part(t, op)
	case event.ConversationTruncate, event.ConversationDelete:
		return fmt.Errorf("%w: not for an agent to do", event.ErrInvalid)
	}
	return fmt.Errorf("%w: type %q is unknown", event.ErrInvalid, op.Type)
}

// event returns an event with the time of the frame, op's type and body, and the id of its turn. The caller sets the other fields.
func (m *Mapper) event(t *mappedTurn, op *event.Event) event.Event {
	return event.Event{At: m.at, Type: op.Type, Turn: t.id, Body: op.Body}
}

// add appends an event to the result if it is valid.
func (m *Mapper) add(e event.Event) error {
	if err := e.Validate(); err != nil {
		return err
	}
	m.mapped = append(m.mapped, e)
	return nil
}

// messageID returns the id of the oldest message with a key, in any turn, or "" if no message has it.
func (m *Mapper) messageID(key string) string {
	if i := slices.IndexFunc(m.msgs, func(msg *mappedMessage) bool { return key != "" && msg.key == key }); i >= 0 {
		return m.msgs[i].id
	}
	return ""
}

// wait maps a question. Its part, a key, becomes an id; a question about an unknown part is asked without one. If the operation names no
// message, the part is looked up in all of them.
func (m *Mapper) wait(t *mappedTurn, op *event.Event) error {
	e := m.event(t, op)
	if r := op.Get().Request; r != nil && r.Part != "" {
		req := *r
		req.Part = ""
		for _, msg := range m.msgs {
			if i := msg.find(r.Part); i >= 0 && (op.Message == "" || msg.key == op.Message) {
				req.Part = partID(i)
			}
		}
		b := *op.Body
		b.Request = &req
		e.Body = &b
	}
	return m.add(e)
}

// start maps the start of a message, or a message that is added as a whole. The latter has its parts in the body, whose keys become ids. An
// operation without a message is passed on without one, so that Validate reports that it is missing.
func (m *Mapper) start(t *mappedTurn, op *event.Event) error {
	if m.find(t, op) != nil {
		m.DroppedOps++
		return nil
	}
	if err := m.room(1 + len(op.Get().Parts)); err != nil {
		return err
	}
	msg := &mappedMessage{turn: t.id, key: op.Message, id: m.newID(), isOver: op.Type == event.MessageAdd}
	e := m.event(t, op)
	if op.Message != "" {
		e.Message = msg.id
	}
	if op.Type == event.MessageAdd {
		b := *op.Get()
		b.Parts = slices.Clone(b.Parts)
		for i := range b.Parts {
			msg.parts = append(msg.parts, &mappedPart{key: b.Parts[i].ID, kind: b.Parts[i].Kind, isOver: true})
			b.Parts[i].ID = partID(i)
		}
		e.Body = &b
		if b.Role == event.User {
			e.Turn = "" // a user's message belongs to no turn
		}
	}
	if err := m.add(e); err != nil {
		return err
	}
	m.msgs = append(m.msgs, msg)
	m.keys += 1 + len(msg.parts)
	return nil
}

// find returns the message of an operation, or nil. The latest message with the key wins, because an upstream may reuse keys.
func (m *Mapper) find(t *mappedTurn, op *event.Event) *mappedMessage {
	for i := len(m.msgs) - 1; i >= 0; i-- {
		if msg := m.msgs[i]; msg.key == op.Message && msg.turn == t.id {
			return msg
		}
	}
	return nil
}

// message maps an update or the end of a message that was started. A second end is dropped.
func (m *Mapper) message(t *mappedTurn, op *event.Event) error {
	msg := m.find(t, op)
	if msg == nil {
		return fmt.Errorf("%w: message %q was not started", event.ErrInvalid, op.Message)
	}
	if op.Type == event.MessageEnd {
		if msg.isOver {
			m.DroppedOps++
			return nil
		}
		msg.isOver = true
	}
	e := m.event(t, op)
	e.Message = msg.id
	return m.add(e)
}

// find returns the index of the newest part with a key, or -1.
func (m *mappedMessage) find(key string) int {
	for i := len(m.parts) - 1; i >= 0; i-- {
		if m.parts[i].key == key {
			return i
		}
	}
	return -1
}

// partID returns the id of the part with index i.
func partID(i int) string { return "p" + strconv.Itoa(i+1) }

// part maps an operation on a part. The start of a part assigns the next id within its message. All other operations need a part that was
// started; text and the end also change what the Mapper knows of it.
func (m *Mapper) part(t *mappedTurn, op *event.Event) error {
	msg := m.find(t, op)
	if msg == nil {
		return fmt.Errorf("%w: message %q was not started", event.ErrInvalid, op.Message)
	}
	i := msg.find(op.Part)
	e := m.event(t, op)
	e.Message = msg.id
	if op.Type == event.PartStart {
		if i >= 0 {
			m.DroppedOps++
			return nil
		}
		if err := m.room(1); err != nil {
			return err
		}
		if op.Part != "" {
			e.Part = partID(len(msg.parts))
		}
		if err := m.add(e); err != nil {
			return err
		}
		msg.parts = append(msg.parts, &mappedPart{key: op.Part, kind: op.Get().Kind})
		m.keys++
		return nil
	}
	if i < 0 {
		return fmt.Errorf("%w: part %q of message %q was not started", event.ErrInvalid, op.Part, op.Message)
	}
	e.Part = partID(i)
	p := msg.parts[i]
	switch op.Type {
	case event.PartAppend, event.PartReplace:
		return m.text(p, e, op)
	case event.PartEnd:
		return m.endPart(p, e, op)
	}
	return m.add(e)
}
