// What each event does to a transcript.

package transcript

import (
	"encoding/json"
	"fmt"

	"github.com/leat-dev/leat/event"
)

// Apply folds one event into the transcript. Events must come in ascending seq. An error wraps [ErrGap] or [ErrMismatch] and leaves
// the transcript as it was before the event; the reader then needs a snapshot. Events that were applied before, that come after the
// end of their turn, or that belong to a message outside the window are ignored.
//
// A piece of an operation (event.Event.Partial) is buffered and changes nothing until the last piece has arrived.
func (t *Transcript) Apply(e *event.Event) error {
	if e.Partial || t.pending != nil {
		if e = t.joinPieces(e); e == nil {
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

// apply folds a complete event that isn't covered by the snapshot. Each branch checks the seq against what it changes, so that an
// event can be applied twice.
//
// Only an event of a part can fail. Events of the conversation carry no offset or checksum, and a missing turn or message is normal
// in a window.
func (t *Transcript) apply(e *event.Event) error {
	if t.messages == nil {
		t.messages, t.turns = map[string]*Message{}, map[string]*Turn{}
	}
	if turn := t.turns[e.Turn]; turn != nil && turn.State == TurnEnded {
		if e.Seq > turn.EndSeq {
			t.LateEvents++
			return nil
		}
		// An event from before the end arrives again after a reconnect and has been applied, unless it is an operation on a text: the batch that
		// the connection broke in may have had it after the end, merged with a later operation.
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
	// Events of a message that isn't here are ignored: it is before the window. A gap would make the reader fetch a snapshot, which would not
	// have the message either.
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
	// A deleted conversation is shown as empty.
	case event.ConversationDelete:
		t.truncate("")
	}
	return nil
}

// start adds a message, from its first event or as a whole. The parts of a whole message are final, are separate paragraphs, and
// get the ids p1, p2, ... if the event has none.
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
				part.texts[0].s = p.Text
			}
			// An imported status has its history in the event, and no later operation will complete it.
			part.setNotes(p.History, e.Seq)
			m.Parts = append(m.Parts, part)
		}
	}
	t.Messages = append(t.Messages, m)
	t.messages[m.ID] = m
}

// message applies the end or the state of a message. Each of the two has its seq, because a batch that arrives again may have merged one of
// them with a later event but not the other.
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

// turn applies an event of a turn. An unknown turn is added whatever the event is: a compacted log may begin with any of them. A start and an
// update share one seq, because both set the same fields; questions and answers have one for each question. A turn that is waiting remains so
// if its start arrives again.
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
	// An end is applied once: apply has returned for a turn that has ended. Questions that are still open are dropped, because they have no
	// answer.
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
	setIfAny(&turn.Step, b.Step)
	setIfAny(&turn.Upstream, b.Upstream)
}

// close ends the messages and parts that the turn left open, at the turn's end. Tools that are still running have failed, because
// nothing will report their result. It walks back from the newest message and stops at the first one from before the turn, so that
// the cost doesn't grow with the conversation; this needs to have seen the turn's first event and the message's seq.
func (t *Transcript) close(turn *Turn, e *event.Event) {
	for i := len(t.Messages) - 1; i >= 0; i-- {
		m := t.Messages[i]
		if m.Turn != e.Turn {
			if turn.hasStart && m.Seq != 0 && m.Seq < turn.FirstSeq {
				return
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

// part applies an event of a part. An event of a part that was never started is a gap: the message exists, so its part should too.
func (m *Message) part(e *event.Event) error {
	p := m.Part(e.Part)
	if e.Type == event.PartStart {
		if p == nil {
			b := e.Get()
			// A start that arrives again is ignored, because the part may have changed since.
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

// op applies an append or a replace to one of the part's texts. A final text can only be retracted, by an empty replace.
func (p *Part) op(e *event.Event) error {
	f := &p.texts[index(e.Field)]
	if e.Seq <= f.seq {
		return nil
	}
	if p.Final && e.Seq > p.closed && (e.Type != event.PartReplace || e.Text != "") {
		return nil
	}
	if e.Type == event.PartReplace {
		*f = text{}
		f.append(e.Text)
	} else {
		if e.Offset > int64(len(f.s)) {
			return ErrGap
		}
		// The reader may have a part of the text already, from a batch that was merged differently.
		if overlap := int64(len(f.s)) - e.Offset; overlap < int64(len(e.Text)) {
			f.append(e.Text[overlap:])
		}
	}
	f.seq = e.Seq
	// notedAt is one seq for the whole part, because operations on several of its fields may have notes.
	if (e.History != nil || e.Note != "") && e.Seq > p.notedAt {
		p.addNote(e)
	}
	return nil
}

// end makes a part final if its texts have the lengths and checksums of the event. A field without a checksum isn't checked: it was changed
// after the end, and [Merge] then removes its checksum.
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

// update sets the fields of a part that an update has. An empty title is set too, unlike other empty fields, because an agent may remove it.
func (p *Part) update(b *event.Body) {
	setIfAny(&p.State, b.State)
	setIfAny(&p.Name, b.Name)
	setIfAny(&p.Media, b.Media)
	setIfAny(&p.Error, b.Error)
	if b.Title != nil {
		p.Title = *b.Title
	}
	if b.Data != nil {
		p.Data = b.Data
	}
}

// update sets the title and merges the metadata of the conversation by top-level key; null removes a key.
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

// setIfAny sets *to to v, unless v is the zero value, which means that an event doesn't have the field.
func setIfAny[T comparable](to *T, v T) {
	var zero T
	if v != zero {
		*to = v
	}
}
