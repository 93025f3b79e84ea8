// Turns inside a turn, such as those of subagents: their ids, their parents and their ends.

package dialect

import (
	"slices"

	"github.com/leat-dev/leat/event"
)

// mappedTurn is a turn of the stream.
type mappedTurn struct {
	key, id string // key is empty until an operation of the Mapper's own turn names one
	isOver  bool
}

// turn returns the turn of an operation. An operation without a key belongs to the Mapper's own turn, and the first key that appears becomes
// the key of that turn. Every further key starts a turn, with the fields of the operation if that is itself a start.
func (m *Mapper) turn(op *event.Event) (*mappedTurn, error) {
	main := m.turns[0]
	if op.Turn == "" {
		return main, nil
	}
	if i := slices.IndexFunc(m.turns, func(t *mappedTurn) bool { return t.key == op.Turn }); i >= 0 {
		return m.turns[i], nil
	}
	if main.key == "" {
		main.key = op.Turn
		m.keys++
		return main, nil
	}
	if err := m.room(1); err != nil {
		return nil, err
	}
	t := &mappedTurn{key: op.Turn, id: m.newID()}
	e := event.Event{At: m.at, Type: event.TurnStart, Turn: t.id}
	var b event.Body
	if op.Type == event.TurnStart || op.Type == event.TurnQueue {
		b = *op.Get()
	}
	b.Answers = m.messageID(b.Answers)
	b.Parent = m.parent(b.Parent)
	if b.Parent != "" || op.Body != nil {
		e.Body = &b
	}
	if err := m.add(e); err != nil {
		return nil, err
	}
	m.turns = append(m.turns, t)
	m.keys++
	return t, nil
}

// parent returns the id of the turn around a further turn, given the parent's upstream key.
func (m *Mapper) parent(key string) string {
	for _, t := range m.turns {
		if key != "" && t.key == key {
			return t.id
		}
	}
	if m.Flat {
		return ""
	}
	return m.id
}

// begin maps an upstream's turn.start. The turn has already been started, so the other fields become a turn.update.
func (m *Mapper) begin(t *mappedTurn, op *event.Event) error {
	if t != m.turns[0] {
		return nil // the method turn has started it
	}
	b := op.Get()
	u := event.Body{Phase: b.Phase, Step: b.Step, Upstream: b.Upstream, Model: b.Model}
	if u.Phase == "" && u.Step == 0 && u.Upstream == nil && u.Model == "" {
		return nil
	}
	return m.add(event.Event{At: m.at, Type: event.TurnUpdate, Turn: t.id, Body: &u})
}

// end maps the end of a turn. The end of the Mapper's own turn first ends the turns inside it that are still open: as interrupted after a
// completed turn, and with the same outcome after any other.
func (m *Mapper) end(t *mappedTurn, op *event.Event) error {
	e := m.event(t, op)
	if err := e.Validate(); err != nil {
		return err
	}
	if e.Body.StoppedBy != "" {
		b := *e.Body
		b.StoppedBy = "" // only the gateway knows which user stopped a turn
		e.Body = &b
	}
	if t == m.turns[0] && !m.Flat {
		for _, inner := range m.turns[1:] {
			if !inner.isOver {
				inner.isOver = true
				b := event.Body{Outcome: event.Interrupted, Reason: "the turn around it ended"}
				if o := op.Get().Outcome; o != event.Completed {
					b.Outcome = o
				}
				m.mapped = append(m.mapped, event.Event{At: m.at, Type: event.TurnEnd, Turn: inner.id, Body: &b})
			}
		}
	}
	t.isOver = true
	m.mapped = append(m.mapped, e)
	return nil
}
