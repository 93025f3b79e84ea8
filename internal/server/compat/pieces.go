// From a turn's transcript to the pieces of an answer. These APIs can only append, so text that may still change is held back.

package compat

import (
	"cmp"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// piece is a part of an answer. The concatenated texts of all pieces that are not reasoning are the visible text.
type piece struct {
	reasoning bool
	part      string // of the reasoning; unique in the turn
	text      string
}

// pieces returns the content of a turn that a stream that only appends may send: everything up to the first part that may still
// change, and of that part, unless it is a status, its current text. For an ended turn it returns everything.
//
// These APIs have no frame that takes text back. So a status, which a later one replaces, is sent when it
// is final, and nothing after it is sent before. Text parts and reasoning only grow and are sent as they
// do. The joins between parts are those of the visible text of the messages, so that the concatenation is
// equal to it.
func pieces(messages []*transcript.Message, turn string, hasEnded bool) []piece {
	var list []piece
	hasEarlier := false // an earlier message has text
	for _, m := range messages {
		if m.Turn != turn || m.Role != event.Assistant {
			continue
		}
		hasText := false // this message has text
		for _, p := range m.Parts {
			final := hasEnded || p.Final
			switch p.Kind {
			case event.KindReasoning:
				if p.Len(event.Text) > 0 {
					list = append(list, piece{reasoning: true, part: m.ID + "." + p.ID, text: p.Text(event.Text)})
				}
			case event.KindText, event.KindStatus:
				if p.Kind == event.KindStatus && !final {
					return list
				}
				if p.Len(event.Text) > 0 {
					join := ""
					switch {
					case hasText:
						join = p.Join
					case hasEarlier:
						join = event.JoinBlank
					}
					hasText = true
					list = append(list, piece{text: join + p.Text(event.Text)})
				}
				if !final {
					return list
				}
			}
		}
		hasEarlier = hasEarlier || hasText
		if !hasEnded && !m.Final {
			return list // its later parts come before the next message
		}
	}
	return list
}

// questions returns the open requests of a turn as reasoning. A client of these APIs can then see why the answer pauses, and
// they are not part of the answer.
func questions(open []*transcript.Request) []piece {
	var list []piece
	for _, r := range open {
		text := cmp.Or(r.Prompt, strings.TrimSpace("The agent waits for "+string(r.Kind)+" "+r.Tool))
		list = append(list, piece{reasoning: true, part: "request." + r.ID, text: "\n\n[waiting for a person] " + text + "\n\n"})
	}
	return list
}

// text returns the visible text of pieces.
func text(pieces []piece) string {
	var b strings.Builder
	for _, p := range pieces {
		if !p.reasoning {
			b.WriteString(p.text)
		}
	}
	return b.String()
}

// merged joins neighbouring pieces of the same kind. With silent, it omits the reasoning.
//
// Without it, an answer of many parts would have as many content blocks, which some clients show as
// separate paragraphs.
func merged(pieces []piece, silent bool) []piece {
	var result []piece
	for _, p := range pieces {
		if n := len(result); p.reasoning && silent {
			continue
		} else if n > 0 && result[n-1].reasoning == p.reasoning {
			result[n-1].text += p.text
		} else {
			result = append(result, p)
		}
	}
	return result
}

// sender sends a client the content that it does not have yet.
type sender struct {
	to     encoder
	silent bool // reasoning is omitted

	visible string            // the visible text that was sent
	thought map[string]string // the text that was sent of each reasoning part
}

// next appends the content of the pieces that was not sent yet. If they contradict the sent text, it appends nothing and
// returns false.
//
// It compares the whole text and not lengths, since a callback or a truncate can replace text that was
// sent. Reasoning is tracked per part, because several parts can grow at the same time.
func (s *sender) next(b []byte, pieces []piece) ([]byte, bool) {
	if !strings.HasPrefix(text(pieces), s.visible) {
		return b, false
	}
	at := 0
	for _, p := range pieces {
		if p.reasoning {
			b = s.think(b, p)
			continue
		}
		end := at + len(p.text)
		if end > len(s.visible) {
			suffix := p.text[max(0, len(s.visible)-at):]
			s.visible += suffix
			b = s.to.Text(b, suffix)
		}
		at = end
	}
	return b, true
}

// think sends the new text of a reasoning part. If the part was replaced, the sent text stays, because it is not part of the
// answer.
func (s *sender) think(b []byte, p piece) []byte {
	suffix, extends := strings.CutPrefix(p.text, s.thought[p.part])
	if s.silent || !extends || suffix == "" {
		return b
	}
	if s.thought == nil {
		s.thought = map[string]string{}
	}
	s.thought[p.part] = p.text
	return s.to.Reasoning(b, suffix)
}
