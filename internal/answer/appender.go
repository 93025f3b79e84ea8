// Answers for formats that can only append: what may still change is buffered.

package answer

import (
	"strings"

	"github.com/leat-dev/leat/event"
)

// Piece is a piece of an answer's text. The concatenated texts of all pieces that are not reasoning are the visible text of the turn.
type Piece struct {
	IsReasoning bool
	Text        string
	// The part that the text is in, for formats whose texts are parts. Join is the length of the separator from the part before, at the beginning of
	// Text.
	Message, Part string
	Join          int
}

// stretch is the text of one part, with the separator before it.
type stretch struct {
	isReasoning bool
	message     string
	part        string
	join, text  string
}

// stretches returns the content of an answer that may be sent if nothing can be taken back: everything up to the first part that may
// still change, and of that part, unless it is a status, its current text. Of a turn that has ended it returns everything.
//
// A status is final when its part or the turn has ended, because a later one may replace it until then, and nothing after it is sent before.
// Texts and reasoning only grow, and are sent as they do. The joins between parts are those of the visible text of the messages.
func (a *Answer) stretches() []stretch {
	var list []stretch
	hasEnded := a.HasEnded()
	hasEarlier := false // an earlier message has text
	for _, m := range a.fold.Messages {
		if m.Role != event.Assistant {
			continue
		}
		hasText := false // this message has text
		for _, p := range m.Parts {
			isFinal := hasEnded || p.Final
			s := stretch{message: m.ID, part: p.ID, text: p.Text(event.Text)}
			switch p.Kind {
			case event.KindReasoning:
				s.isReasoning = true
			case event.KindText, event.KindStatus:
				if p.Kind == event.KindStatus && !isFinal {
					return list
				}
				if hasText {
					s.join = p.Join
				} else if hasEarlier {
					s.join = event.JoinBlank
				}
				hasText = hasText || s.text != ""
			default:
				continue
			}
			if s.text != "" {
				list = append(list, s)
			}
			if !s.isReasoning && !isFinal {
				return list
			}
		}
		hasEarlier = hasEarlier || hasText
		if !hasEnded && !m.Final {
			return list // its later parts come before the next message
		}
	}
	return list
}

// Pieces returns the content of an answer that may be sent if nothing can be taken back. Of a turn that has ended it returns everything.
func (a *Answer) Pieces() []Piece {
	var pieces []Piece
	for _, s := range a.stretches() {
		pieces = append(pieces, Piece{s.isReasoning, s.join + s.text, s.message, s.part, len(s.join)})
	}
	return pieces
}

// Appender turns the operations of an answer into pieces that a client appends. The zero value has returned nothing.
type Appender struct {
	visible strings.Builder // the visible text of all pieces
	// The text of each reasoning part in all pieces. Several parts may grow at the same time.
	thoughts map[partKey]string
	// The visible text may contradict that of the pieces: it was changed other than by an append.
	isSuspect bool
	// What earlier readings have appended isn't known.
	isUnclear bool
}

type partKey struct{ message, part string }

// Next returns what is appended after an operation, which was the last one that was applied to a. It must get each operation, also those that
// the client has received, whose pieces the client has too. As long as the visible text contradicts the pieces so far, it returns nothing.
//
// A replaced text doesn't contradict the pieces if it begins with what they have of it. Reasoning that is replaced stays as it is, because it
// is not part of the visible text.
func (s *Appender) Next(a *Answer, op *Op) []Piece {
	switch op.Type {
	case event.PartStart:
		s.isSuspect = true // it may be in a message before the last one
	case event.PartAppend, event.PartReplace:
		if op.Field != event.Text {
			return nil
		}
		s.isSuspect = s.isSuspect || op.Type == event.PartReplace
		s.isUnclear = s.isUnclear || op.isUnclear
	}
	// Other operations only append, or let more of the content through. So the texts are seldom compared, although they are long.
	list := a.stretches()
	if s.isUnclear || s.isSuspect && !beginsWith(list, s.visible.String()) {
		return nil
	}
	s.isSuspect = false
	// A walk over all parts and not only the changed one: the end of one part lets the next ones through.
	var pieces []Piece
	at := 0 // in the visible text
	for _, part := range list {
		if part.isReasoning {
			if text := s.think(&part); text != "" {
				pieces = append(pieces, Piece{true, text, part.message, part.part, 0})
			}
			continue
		}
		begin := at
		at += len(part.join) + len(part.text)
		if n := s.visible.Len() - begin; at > s.visible.Len() {
			join := part.join[min(n, len(part.join)):]
			text := join + part.text[max(0, n-len(part.join)):]
			s.visible.WriteString(text)
			pieces = append(pieces, Piece{false, text, part.message, part.part, len(join)})
		}
	}
	return pieces
}

// IsContradicted reports whether the visible text doesn't begin with that of the pieces, or whether that isn't known, because the log was
// compacted since the client received them.
func (s *Appender) IsContradicted() bool { return s.isSuspect || s.isUnclear }

// think returns the text of a reasoning part that no piece has.
func (s *Appender) think(part *stretch) string {
	k := partKey{part.message, part.part}
	if len(part.text) <= len(s.thoughts[k]) {
		return ""
	}
	text, extends := strings.CutPrefix(part.text, s.thoughts[k])
	if !extends {
		return ""
	}
	if s.thoughts == nil {
		s.thoughts = map[partKey]string{}
	}
	s.thoughts[k] = part.text
	return text
}

// beginsWith reports whether the visible text of a list begins with a text.
func beginsWith(list []stretch, text string) bool {
	for i := range list {
		if list[i].isReasoning {
			continue
		}
		for _, s := range []string{list[i].join, list[i].text} {
			n := min(len(s), len(text))
			if s[:n] != text[:n] {
				return false
			}
			text = text[n:]
		}
	}
	return text == ""
}
