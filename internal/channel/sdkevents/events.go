package sdkevents

import (
	"cmp"
	"encoding/json"
	"iter"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/transcript"
)

// Events returns the stream of a turn as agentsdk events, each as JSON. It receives from events until the channel is closed. An
// error means that the stream has lost an event; it is the last value, and SendStream returns it.
func Events(turn string, events <-chan channel.StreamEvent) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		w := writer{
			stream: channel.NewStream(turn), textIndex: noBlock,
			texts: map[partKey]*shownText{}, calls: map[partKey]*call{}, ids: map[string]bool{},
		}
		for e := range events {
			if err := w.apply(e); err != nil {
				yield(nil, err)
				return
			}
			for _, f := range w.frames {
				b, err := json.Marshal(f)
				if !yield(b, err) || err != nil {
					return
				}
			}
		}
	}
}

// noBlock is the index of a block that hasn't started.
const noBlock = -1

// writer compares the state of a turn with what its reader has, and makes the frames of the difference.
type writer struct {
	stream           *channel.Stream
	frames           []frame // of the current step
	hasBegun, isOver bool
	isEnding         bool // the turn has ended, so nothing is waited for

	// The current iteration.
	iteration int
	blocks    int    // the number of blocks of its message
	textIndex int    // of the block with its text, or noBlock
	text      string // what that block has
	open      []*call

	texts map[partKey]*shownText
	calls map[partKey]*call
	ids   map[string]bool // of the calls
}

// partKey identifies a part within the turn.
type partKey struct{ message, part string }

// keyedPart is a text, a status or a tool call of the turn.
type keyedPart struct {
	*transcript.Part
	key partKey
}

// shownText is a text part that the reader has.
type shownText struct {
	iteration int // the last one that has it
	text      string
}

// apply folds one step and replaces the frames by those of the step.
func (w *writer) apply(e channel.StreamEvent) error {
	w.frames = nil
	if err := w.stream.Apply(e); err != nil || w.isOver {
		return err
	}
	if w.stream.IsRemoved() {
		w.remove()
		return nil
	}
	turn := w.stream.Turn()
	if turn == nil || turn.State == transcript.TurnQueued {
		return nil
	}
	if !w.hasBegun {
		w.hasBegun = true
		w.add(frame{Type: agentStart})
		w.beginIteration()
	}
	w.isEnding = !turn.Unfinished()
	w.update()
	if w.isEnding {
		w.end(turn)
	}
	return nil
}

// add adds a frame to those that are passed on next.
func (w *writer) add(f frame) { w.frames = append(w.frames, f) }

// parts returns the texts and the tool calls of the turn in their order. An empty text isn't visible, so it is left out.
func (w *writer) parts() []keyedPart {
	var list []keyedPart
	for _, m := range w.stream.Messages() {
		for _, p := range m.Parts {
			switch p.Kind {
			case event.KindTool:
			case event.KindText, event.KindStatus:
				if p.Len(event.Text) == 0 {
					continue
				}
			default:
				continue
			}
			list = append(list, keyedPart{p, partKey{m.ID, p.ID}})
		}
	}
	return list
}

// update brings the reader to the current state. The calls that it knows come first, because the end of one may allow the next iteration.
func (w *writer) update() {
	parts := w.parts()
	for i, p := range parts {
		if c := w.calls[p.key]; c != nil {
			w.updateCall(c, p.Part, i == len(parts)-1)
		}
	}
	for i, p := range parts {
		if p.Kind != event.KindTool {
			w.place(parts, i)
		} else if w.calls[p.key] == nil {
			w.writeText(parts, w.hasOpenCall()) // the text before the call
			w.updateCall(w.beginCall(p), p.Part, i == len(parts)-1)
		}
	}
	w.writeText(parts, w.hasOpenCall())
}

// place assigns the text at index i to the current iteration if it is new, or has changed since an earlier one. After a tool call it
// begins an iteration, or waits for a later step if that is not possible yet.
func (w *writer) place(parts []keyedPart, i int) {
	p := parts[i]
	text := p.Text(event.Text)
	if s := w.texts[p.key]; s != nil && (s.iteration == w.iteration || s.text == text) {
		s.text = text
		return
	}
	if w.hasCall(parts[:i]) {
		if w.isBusy(parts[i+1:]) {
			return
		}
		w.writeText(parts, false) // a change that the end of the iteration would leave out
	}
	if w.hasCall(parts[:i]) { // the change has not begun another iteration
		w.endIteration(w.stopReason())
		w.iteration++
		w.beginIteration()
	}
	w.texts[p.key] = &shownText{iteration: w.iteration, text: text}
}

// writeText brings the text of the iteration up to date. A text that doesn't continue the one that the reader has is written in a new
// iteration, to which all texts of this one move. If hasToWait is set, that is left to a later step.
func (w *writer) writeText(parts []keyedPart, hasToWait bool) {
	text := w.currentText(parts)
	added, isGrowth := strings.CutPrefix(text, w.text)
	if !isGrowth {
		if hasToWait {
			return
		}
		w.restart()
		added = text
	}
	if added == "" {
		return
	}
	if w.textIndex == noBlock {
		w.textIndex = w.beginBlock(block{Type: "text"})
	}
	w.add(frame{Type: blockDelta, Index: new(w.textIndex), Delta: &delta{Type: "text_delta", Text: added}})
	w.text = text
}

// currentText returns the text of the iteration. As in the visible text of a turn, messages are separated by blank lines.
func (w *writer) currentText(parts []keyedPart) string {
	var b strings.Builder
	last := ""
	for _, p := range parts {
		if s := w.texts[p.key]; s == nil || s.iteration != w.iteration {
			continue
		}
		switch {
		case b.Len() == 0:
		case p.key.message == last:
			b.WriteString(p.Join)
		default:
			b.WriteString(event.JoinBlank)
		}
		last = p.key.message
		b.WriteString(p.Text(event.Text))
	}
	return b.String()
}

// restart retracts the text of the iteration and begins the next one, with the same texts. The block starts again because readers that
// keep the text of every iteration take that for its replacement.
func (w *writer) restart() {
	if w.textIndex != noBlock {
		w.add(frame{Type: blockStart, Index: new(w.textIndex), Block: &block{Type: "text"}})
	}
	w.endIteration(w.stopReason())
	for _, s := range w.texts {
		if s.iteration == w.iteration {
			s.iteration++
		}
	}
	w.iteration++
	w.beginIteration()
}

// remove ends the stream of a turn that was removed from its conversation: readers should show none of it.
func (w *writer) remove() {
	if w.hasBegun {
		w.restart()
	}
	w.fail(textCancelled)
}

// end ends the stream as the turn ended.
func (w *writer) end(turn *transcript.Turn) {
	switch {
	case turn.Outcome == event.Completed:
		reason := cmp.Or(turn.Reason, "end_turn")
		if reason == event.ReasonLength {
			reason = "max_tokens"
		}
		w.endIteration(reason)
		w.add(frame{Type: agentStop})
		w.isOver = true
	case turn.Outcome == event.Cancelled:
		w.fail(textCancelled)
	case turn.Error != nil && turn.Error.Code == "max_iterations":
		w.fail(textLimit)
	case turn.Error != nil && turn.Error.Message != "":
		w.fail(turn.Error.Message)
	default:
		w.fail("the turn ended: " + string(turn.Outcome))
	}
}

// fail ends the stream with an error. As in agentsdk, nothing else ends before it.
func (w *writer) fail(text string) {
	w.add(frame{Type: failure, Output: text, IsError: true})
	w.isOver = true
}
