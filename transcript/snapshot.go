package transcript

import (
	"encoding/json"
	"maps"
	"slices"
)

// Snapshot is a contiguous part of a transcript as it was at Seq: the newest messages, or a page of older ones. It must not be
// changed. It shares only immutable memory with its transcript, so several goroutines may encode it while the transcript changes.
type Snapshot struct {
	Seq      int64
	Title    string
	Metadata map[string]json.RawMessage
	Messages []*Message
	Turns    []*Turn // in order of their first event
	// Earlier is true if the conversation has messages before the first one here.
	Earlier bool
}

// FirstMessage returns the id of the first message, or "" if the snapshot has no messages.
func (s *Snapshot) FirstMessage() string {
	if len(s.Messages) == 0 {
		return ""
	}
	return s.Messages[0].ID
}

// Snapshot copies the messages from index from to the newest, and every turn that had not ended before the first of them began. The cost
// depends on the number of parts, not on the length of their texts, which are shared.
func (t *Transcript) Snapshot(from int) *Snapshot {
	s := t.excerpt(from, len(t.Messages))
	s.Title, s.Metadata = t.Title, maps.Clone(t.Metadata)
	return s
}

// Page copies the messages from index from to index to, without the latter, and the turns that wrote or answer them.
func (t *Transcript) Page(from, to int) *Snapshot {
	s := t.excerpt(from, to)
	ids := map[string]bool{} // of the messages and of their turns
	for _, m := range s.Messages {
		ids[m.ID], ids[m.Turn] = true, true
	}
	s.Turns = slices.DeleteFunc(s.Turns, func(turn *Turn) bool {
		return !ids[turn.ID] && (turn.Answers == "" || !ids[turn.Answers])
	})
	return s
}

// excerpt copies a range of messages, and the turns that had not ended before the first of them. Without messages it copies the turns that
// have not ended before the newest event.
func (t *Transcript) excerpt(from, to int) *Snapshot {
	s := &Snapshot{Seq: t.Seq, Earlier: t.Earlier || from > 0}
	s.Messages = copyMessages(t.Messages[from:to])
	since := t.Seq
	if len(s.Messages) > 0 {
		since = s.Messages[0].Seq
	}
	// A turn belongs to the range if it was running at any time since the first message. With all messages, all turns do.
	for _, turn := range t.Turns {
		if from == 0 || turn.Unfinished() || turn.EndSeq >= since {
			s.Turns = append(s.Turns, copyTurn(turn))
		}
	}
	return s
}

// Reset replaces the contents of t with a copy of s. From then on Apply ignores events up to s.Seq.
func (t *Transcript) Reset(s *Snapshot) {
	*t = Transcript{
		Title: s.Title, Metadata: maps.Clone(s.Metadata), Messages: copyMessages(s.Messages), Earlier: s.Earlier,
		Seq: s.Seq, floor: s.Seq, messages: make(map[string]*Message, len(s.Messages)), turns: make(map[string]*Turn, len(s.Turns)),
	}
	for _, m := range t.Messages {
		t.messages[m.ID] = m
	}
	for _, turn := range s.Turns {
		turn = copyTurn(turn)
		t.Turns = append(t.Turns, turn)
		t.turns[turn.ID] = turn
	}
}

// AddPage inserts a page of older messages before the first message, whose id must be before. cursor is the seq of the reader's
// cursor, which is at least that of its snapshot. If the page is older than the cursor, or doesn't end at the first message, because
// of a Reset since the request or because it was added already, AddPage returns false and changes nothing. The reader then has to
// request the page again. The caller must discard pages of another epoch.
func (t *Transcript) AddPage(p *Snapshot, before string, cursor int64) bool {
	if p.Seq < cursor || len(t.Messages) == 0 || t.Messages[0].ID != before {
		return false
	}
	// A message that is here already means that the page was added before.
	for _, m := range p.Messages {
		if t.messages[m.ID] != nil {
			return false
		}
	}
	messages := copyMessages(p.Messages)
	for _, m := range messages {
		m.floor = p.Seq
		t.messages[m.ID] = m
	}
	t.Messages = append(messages, t.Messages...)
	t.Earlier = p.Earlier
	// The end of a turn after the cursor will still arrive as an event. If the turn were added as ended, that event would be ignored.
	turns := make([]*Turn, 0, len(p.Turns)+len(t.Turns))
	for _, turn := range p.Turns {
		if t.turns[turn.ID] == nil && turn.State == TurnEnded && turn.EndSeq <= cursor {
			turn = copyTurn(turn)
			turns = append(turns, turn)
			t.turns[turn.ID] = turn
		}
	}
	t.Turns = append(turns, t.Turns...)
	return true
}

// copyMessages copies messages with their parts. The texts and notes are shared. An append to a copy doesn't write into the memory
// of the original: a text of a copy has no builder, and its notes have no spare capacity.
func copyMessages(messages []*Message) []*Message {
	copies := make([]*Message, len(messages))
	for i, m := range messages {
		c := *m
		c.Parts = make([]*Part, len(m.Parts))
		// One array for all parts of a message saves an allocation for each.
		parts := make([]Part, len(m.Parts))
		for j, p := range m.Parts {
			parts[j] = *p
			for k := range parts[j].texts {
				parts[j].texts[k].w = nil
			}
			parts[j].notes = p.notes[:len(p.notes):len(p.notes)]
			c.Parts[j] = &parts[j]
		}
		copies[i] = &c
	}
	return copies
}

// copyTurn copies a turn with its questions. The answered ones are shared. An empty list of questions is nil, so that a copy equals the turn as JSON.
func copyTurn(turn *Turn) *Turn {
	c := *turn
	c.Requests = make([]*Request, len(turn.Requests))
	for i, r := range turn.Requests {
		q := *r
		c.Requests[i] = &q
	}
	if len(c.Requests) == 0 {
		c.Requests = nil
	}
	// The copy has no spare capacity, so that an append to it doesn't write into the memory of the original.
	c.Answered = slices.Clip(turn.Answered)
	c.answeredAt = maps.Clone(turn.answeredAt)
	return &c
}
