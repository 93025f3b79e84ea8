package transcript

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/leat-dev/leat/event"
)

// Apply folds one event into the transcript. Events must come in ascending seq. An error wraps [ErrGap] or [ErrMismatch] and leaves
// the transcript as it was before the event; the reader then needs a snapshot. Events that were applied before, that come after the
// end of their turn, or that belong to a message outside the window are ignored.
//
// A piece of an operation (event.Event.Partial) is buffered and changes nothing until the last piece has arrived.
func (t *Transcript) Apply(e *event.Event) error {
	if e.Partial || t.pending != nil {
		if e = t.hold(e); e == nil {
			return nil
		}
	}
	if e.Seq <= t.floor {
		return nil
	}
	if err := t.apply(e); err != nil {
		return fmt.Errorf("%w: %s at %d", err, e.Type, e.Seq)
	}
	t.Seq = max(t.Seq, e.Seq)
	return nil
}

func (t *Transcript) apply(e *event.Event) error {
	if t.messages == nil {
		t.messages, t.turns = map[string]*Message{}, map[string]*Turn{}
	}
	if turn := t.turns[e.Turn]; turn != nil && turn.State == TurnEnded {
		if e.Seq > turn.EndSeq {
			t.LateEvents++
			return nil
		}
		// What comes again, because the reader was cut, is known, but for operations on texts: the batch that was cut may
		// have held them behind the end, merged with a later one.
		if !e.Op() {
			return nil
		}
	}
	switch e.Type {
	case event.MessageAdd, event.MessageStart:
		t.start(e)
	case event.MessageUpdate, event.MessageEnd:
		t.message(e)
	case event.TurnQueue, event.TurnStart, event.TurnUpdate, event.TurnWait, event.TurnResume, event.TurnEnd:
		t.turn(e)
	case event.PartStart, event.PartAppend, event.PartReplace, event.PartUpdate, event.PartEnd:
		m := t.messages[e.Message]
		if m == nil || e.Seq <= m.floor {
			return nil
		}
		return m.part(e)
	case event.ConversationUpdate:
		if e.Seq > t.updated {
			t.updated = e.Seq
			t.update(e.Get())
		}
	case event.ConversationTruncate:
		if e.Seq > t.Truncated {
			t.Truncated = e.Seq
			t.truncate(e.Message)
		}
	case event.ConversationDelete:
		t.truncate("")
	}
	return nil
}

func (t *Transcript) start(e *event.Event) {
	if t.messages[e.Message] != nil {
		return
	}
	b := e.Get()
	m := &Message{ID: e.Message, Turn: e.Turn, Role: b.Role, Author: b.Author, Source: b.Source, At: e.At, Seq: e.Seq}
	if e.Type == event.MessageAdd {
		m.Final, m.EndAt = true, e.At
		for i, p := range b.Parts {
			part := &Part{ID: p.ID, Kind: p.Kind, Media: p.Media, Data: p.Data, At: e.At, EndAt: e.At, Final: true, closed: e.Seq}
			if part.ID == "" {
				part.ID = fmt.Sprintf("p%d", i+1)
			}
			if i > 0 {
				part.Join = event.JoinBlank
			}
			if p.Text != "" {
				part.texts[0].b = []byte(p.Text)
			}
			part.setNotes(p.History, e.Seq)
			m.Parts = append(m.Parts, part)
		}
	}
	t.Messages = append(t.Messages, m)
	t.messages[m.ID] = m
}

func (t *Transcript) message(e *event.Event) {
	m := t.messages[e.Message]
	if m == nil || e.Seq <= m.floor {
		return
	}
	b := e.Get()
	if e.Type == event.MessageEnd {
		if !m.Final && e.Seq > m.closed {
			m.closed, m.Final, m.EndAt, m.StopReason = e.Seq, true, e.At, b.Reason
		}
	} else if e.Seq > m.updated {
		m.updated, m.State, m.StateTurn, m.StateReason = e.Seq, b.MessageState, e.Turn, b.Reason
	}
}

func (t *Transcript) turn(e *event.Event) {
	b := e.Get()
	turn := t.turns[e.Turn]
	if turn == nil {
		turn = &Turn{ID: e.Turn, State: TurnRunning, FirstSeq: e.FirstSeq()}
		turn.hasStart = e.Type == event.TurnQueue || e.Type == event.TurnStart
		t.turns[e.Turn] = turn
		t.Turns = append(t.Turns, turn)
	}
	switch e.Type {
	case event.TurnWait:
		t.wait(turn, e)
		return
	case event.TurnResume:
		t.answer(turn, e)
		return
	case event.TurnEnd:
		turn.State, turn.Outcome, turn.Reason, turn.StoppedBy, turn.Error, turn.Usage = TurnEnded, b.Outcome, b.Reason, b.StoppedBy, b.Error, b.Usage
		turn.EndedAt, turn.EndSeq, turn.Requests, turn.answeredAt = e.At, e.Seq, nil, nil
		t.close(turn, e)
		return
	}
	if e.Seq <= turn.updated {
		return
	}
	turn.updated = e.Seq
	switch e.Type {
	case event.TurnQueue:
		turn.State, turn.QueuedAt = TurnQueued, e.At
	case event.TurnStart:
		turn.State, turn.StartedAt = TurnRunning, e.At
		if len(turn.Requests) > 0 {
			turn.State = TurnWaiting
		}
	}
	setIfAny(&turn.Agent, b.Agent)
	setIfAny(&turn.Answers, b.Answers)
	setIfAny(&turn.Parent, b.Parent)
	setIfAny(&turn.Source, b.Source)
	setIfAny(&turn.Phase, b.Phase)
	setIfAny(&turn.Model, b.Model)
	if b.Step != 0 {
		turn.Step = b.Step
	}
	if b.Upstream != nil {
		turn.Upstream = b.Upstream
	}
}

func (t *Transcript) wait(turn *Turn, e *event.Event) {
	r := e.Get().Request
	if r == nil || e.Seq <= turn.answeredAt[r.ID] {
		return
	}
	for _, open := range turn.Requests {
		if open.ID == r.ID {
			return
		}
	}
	turn.Requests = append(turn.Requests, &Request{Request: *r, At: e.At, seq: e.Seq})
	if turn.State == TurnRunning {
		turn.State = TurnWaiting
	}
}

func (t *Transcript) answer(turn *Turn, e *event.Event) {
	a := e.Get().Answer
	if a == nil || e.Seq <= turn.answeredAt[a.ID] {
		return
	}
	if turn.answeredAt == nil {
		turn.answeredAt = map[string]int64{}
	}
	turn.answeredAt[a.ID] = e.Seq
	turn.Requests = slices.DeleteFunc(turn.Requests, func(r *Request) bool { return r.ID == a.ID && r.seq < e.Seq })
	if len(turn.Requests) == 0 && turn.State == TurnWaiting {
		turn.State = TurnRunning
	}
}

// close ends the messages and parts that the turn left open.
func (t *Transcript) close(turn *Turn, e *event.Event) {
	for i := len(t.Messages) - 1; i >= 0; i-- {
		m := t.Messages[i]
		if m.Turn != e.Turn {
			if turn.hasStart && m.Seq != 0 && m.Seq < turn.FirstSeq {
				return // no message of a turn is older than it
			}
			continue
		}
		if e.Seq <= m.floor {
			continue
		}
		if !m.Final {
			m.Final, m.EndAt = true, e.At
		}
		for _, p := range m.Parts {
			if !p.Final {
				p.closed, p.Final, p.EndAt = e.Seq, true, e.At
			}
			if p.State == event.PartRunning {
				p.State = event.PartFailed
				if p.Error == nil {
					p.Error = &event.Error{Code: string(e.Get().Outcome), Message: "the turn ended: " + string(e.Get().Outcome)}
				}
			}
		}
	}
}

func (m *Message) part(e *event.Event) error {
	p := m.Part(e.Part)
	if e.Type == event.PartStart {
		if p == nil {
			b := e.Get()
			p = &Part{ID: e.Part, Kind: b.Kind, Name: b.Name, Call: b.Call, MediaType: b.MediaType, Join: b.Join, State: b.State, Media: b.Media, Data: b.Data, At: e.At}
			if b.Title != nil {
				p.Title = *b.Title
			}
			m.Parts = append(m.Parts, p)
		}
		return nil
	}
	if p == nil {
		return ErrGap
	}
	switch e.Type {
	case event.PartUpdate:
		if e.Seq > p.updated {
			p.updated = e.Seq
			p.update(e.Get())
		}
		return nil
	case event.PartEnd:
		return p.end(e)
	}
	return p.op(e)
}

func (p *Part) op(e *event.Event) error {
	f := &p.texts[index(e.Field)]
	if e.Seq <= f.seq {
		return nil
	}
	if p.Final && e.Seq > p.closed && (e.Type != event.PartReplace || e.Text != "") {
		return nil // what is final can only be taken back
	}
	if e.Type == event.PartReplace {
		f.b = append(f.b[:0:0], e.Text...)
	} else {
		if e.Offset > int64(len(f.b)) {
			return ErrGap
		}
		if overlap := int64(len(f.b)) - e.Offset; overlap < int64(len(e.Text)) {
			f.b = append(f.b, e.Text[overlap:]...)
		}
	}
	f.seq = e.Seq
	if (e.History != nil || e.Note != "") && e.Seq > p.notedAt {
		p.take(e)
	}
	return nil
}

func (p *Part) end(e *event.Event) error {
	if p.Final {
		return nil
	}
	for _, f := range Fields {
		if s, ok := e.Get().Sums[f.Name()]; ok && s != p.Sum(f) {
			return ErrMismatch
		}
	}
	p.closed, p.Final, p.EndAt = e.Seq, true, e.At
	return nil
}

func (p *Part) update(b *event.Body) {
	setIfAny(&p.State, b.State)
	setIfAny(&p.Name, b.Name)
	if b.Title != nil {
		p.Title = *b.Title
	}
	if b.Media != nil {
		p.Media = b.Media
	}
	if b.Error != nil {
		p.Error = b.Error
	}
	if b.Data != nil {
		p.Data = b.Data
	}
}

func (t *Transcript) update(b *event.Body) {
	if b.Title != nil {
		t.Title = *b.Title
	}
	for k, v := range b.Metadata {
		if string(v) == "null" {
			delete(t.Metadata, k)
			continue
		}
		if t.Metadata == nil {
			t.Metadata = map[string]json.RawMessage{}
		}
		t.Metadata[k] = v
	}
}

func setIfAny[T ~string](to *T, v T) {
	if v != "" {
		*to = v
	}
}
