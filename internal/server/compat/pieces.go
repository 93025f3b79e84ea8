package compat

import (
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// piece is a stretch of an answer. The texts of all that are not reasoning are the visible text.
type piece struct {
	reasoning bool
	part      string // of the reasoning; unique within the turn
	text      string
}

// pieces are what of a turn can be told to somebody who only appends: all up to the first part that may yet change, and of
// that, unless it is a status, what is there. Once the turn is over that is everything.
func pieces(messages []*transcript.Message, turn string, over bool) []piece {
	var all []piece
	said := false // by a message before
	for _, m := range messages {
		if m.Turn != turn || m.Role != event.Assistant {
			continue
		}
		begun := false // this message has said something
		for _, p := range m.Parts {
			final := over || p.Ended
			switch p.Kind {
			case event.KindReasoning:
				if p.Len(event.Text) > 0 {
					all = append(all, piece{reasoning: true, part: m.ID + "." + p.ID, text: p.Text(event.Text)})
				}
			case event.KindText, event.KindStatus:
				if p.Kind == event.KindStatus && !final {
					return all
				}
				if p.Len(event.Text) > 0 {
					join := ""
					switch {
					case begun:
						join = p.Join
					case said:
						join = event.JoinBlank
					}
					begun = true
					all = append(all, piece{text: join + p.Text(event.Text)})
				}
				if !final {
					return all
				}
			}
		}
		said = said || begun
		if !over && !m.Ended {
			return all // more of it may come before what the next one says
		}
	}
	return all
}

// questions are what the turn waits for, as reasoning: those who only read here see why nothing comes, and it is no part of the
// answer.
func questions(open []*transcript.Request) []piece {
	var all []piece
	for _, r := range open {
		text := r.Prompt
		if text == "" {
			text = strings.TrimSpace("The agent waits for " + string(r.Kind) + " " + r.Tool)
		}
		all = append(all, piece{reasoning: true, part: "request." + r.ID, text: "\n\n[waiting for a person] " + text + "\n\n"})
	}
	return all
}

// text is the visible text of pieces.
func text(all []piece) string {
	var b strings.Builder
	for _, p := range all {
		if !p.reasoning {
			b.WriteString(p.text)
		}
	}
	return b.String()
}

// merged puts neighbours of one kind together. Without the reasoning, where it is not wanted.
func merged(all []piece, silent bool) []piece {
	var out []piece
	for _, p := range all {
		if n := len(out); p.reasoning && silent {
			continue
		} else if n > 0 && out[n-1].reasoning == p.reasoning {
			out[n-1].text += p.text
		} else {
			out = append(out, p)
		}
	}
	return out
}

// sender tells a client what it does not have yet.
type sender struct {
	to     encoder
	silent bool // reasoning is left out

	said    string            // the visible text that was sent
	thought map[string]string // what of each reasoning was sent
}

// next appends what of the pieces was not sent yet. It reports false, and appends nothing, where they contradict what was.
func (s *sender) next(b []byte, all []piece) ([]byte, bool) {
	if !strings.HasPrefix(text(all), s.said) {
		return b, false
	}
	at := 0
	for _, p := range all {
		if p.reasoning {
			b = s.think(b, p)
			continue
		}
		end := at + len(p.text)
		if end > len(s.said) {
			more := p.text[max(0, len(s.said)-at):]
			s.said += more
			b = s.to.Text(b, more)
		}
		at = end
	}
	return b, true
}

// think sends what a reasoning has grown by. One that was replaced stays as it was sent: it is not the answer.
func (s *sender) think(b []byte, p piece) []byte {
	more, grown := strings.CutPrefix(p.text, s.thought[p.part])
	if s.silent || !grown || more == "" {
		return b
	}
	if s.thought == nil {
		s.thought = map[string]string{}
	}
	s.thought[p.part] = p.text
	return s.to.Reasoning(b, more)
}
