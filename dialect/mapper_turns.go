package dialect

import (
	"slices"

	"github.com/leat-dev/leat/event"
)

type mappedTurn struct {
	key, id string
	hasKey  bool // key is set
	isOver  bool
}

// turn returns the turn of an operation, which it starts if the key is new.
func (m *Mapper) turn(op *event.Event) (*mappedTurn, error) {
	main := m.turns[0]
	if op.Turn == "" {
		return main, nil
	}
	if i := slices.IndexFunc(m.turns, func(t *mappedTurn) bool { return t.hasKey && t.key == op.Turn }); i >= 0 {
		return m.turns[i], nil
	}
	if !main.hasKey {
		main.key, main.hasKey = op.Turn, true
		m.keys++
		return main, nil
	}
	if err := m.room(1); err != nil {
		return nil, err
	}
	t := &mappedTurn{key: op.Turn, id: m.newID(), hasKey: true}
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
		if key != "" && t.hasKey && t.key == key {
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
		return nil // see turn
	}
	b := op.Get()
	u := event.Body{Phase: b.Phase, Step: b.Step, Upstream: b.Upstream, Model: b.Model}
	if u.Phase == "" && u.Step == 0 && u.Upstream == nil && u.Model == "" {
		return nil
	}
	return m.add(event.Event{At: m.at, Type: event.TurnUpdate, Turn: t.id, Body: &u})
}

func (m *Mapper) end(t *mappedTurn, op *event.Event) error {
	e := m.event(t, op)
	if err := e.Validate(); err != nil {
		return err
	}
	if e.Body.StoppedBy != "" {
		b := *e.Body
		b.StoppedBy = "" // who stops a turn the gateway says
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
