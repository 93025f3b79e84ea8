// How far a person has heard an answer that was spoken. The transcript has the whole answer; the mark is for the agent, which gets it with the
// person's next message.

package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// HeardPrefix is the prefix of the keys of marks. A key belongs to its conversation and contains no names.
const HeardPrefix = journalkey.HeardPrefix

// HeardMark is how far a person has heard the answer that was spoken to it last.
type HeardMark struct {
	Turn string `json:"turn"`
	// Offset is how much of the visible text of the turn was heard, in bytes.
	Offset int `json:"offset"`
	// IsWhole means that nothing of the answer is left to hear.
	IsWhole bool `json:"whole,omitempty"`
}

// HeardBy reports whether a key is that of a mark of a subject.
func HeardBy(key, tenant, subject string) bool {
	return strings.HasPrefix(key, journalkey.Heard(tenant, subject, ""))
}

// heardMark returns the mark of a listener. It is the zero value if there is none.
func (w *writer) heardMark(listener agent.Principal) (h HeardMark, err error) {
	v, err := w.core.journal.Get(w.core.life, journalkey.Heard(listener.Tenant, listener.Subject, w.id))
	if errors.Is(err, journal.ErrNotFound) {
		return h, nil
	}
	if err == nil {
		err = json.Unmarshal(v, &h)
	}
	if err != nil {
		return h, fmt.Errorf("look up what was heard: %w", err)
	}
	return h, nil
}

// addHeard adds to the message of an input how far its author has heard the answer before it. Agents know what they have written, and a
// person who interrupts refers to what was heard. The transcript has the message without the note.
//
// A text that begins with a slash is left alone, because agents may take it for a command.
func (w *writer) addHeard(in *agent.Input) {
	if in.Message.Text == "" || strings.HasPrefix(in.Message.Text, "/") {
		return
	}
	h, err := w.heardMark(in.Principal)
	if err != nil {
		w.log.Warn("the agent isn't notified of how far its answer was heard", "turn", in.Turn, "error", err)
		return
	}
	if h.Turn == "" || h.IsWhole {
		return
	}
	answer := ""
	w.feed.View(func(t *transcript.Transcript) {
		if lastAnswer(t, in.Message.ID) == h.Turn {
			answer = t.Visible(h.Turn)
		}
	})
	if h.Offset < len(strings.TrimSpace(answer)) {
		in.Message.Text = heardNote(answer[:runeStart(answer, h.Offset)]) + "\n\n" + in.Message.Text
	}
}

// lastAnswer returns the turn that wrote the last answer before a message, or "".
func lastAnswer(t *transcript.Transcript, message string) (turn string) {
	for _, m := range t.Messages {
		switch {
		case m.ID == message:
			return turn
		case m.Role == event.Assistant && m.Turn != "":
			turn = m.Turn
		}
	}
	return turn
}

// maxHeardQuote is how much of an answer the note repeats, in bytes: enough to find the place.
const maxHeardQuote = 120

// heardNote returns the note for an agent of whose answer a person has heard the beginning.
func heardNote(beginning string) string {
	beginning = strings.TrimSpace(beginning)
	if beginning == "" {
		return "[Note from the voice gateway: your previous answer was interrupted before the person heard any of it.]"
	}
	if from := len(beginning) - maxHeardQuote; from > 0 {
		beginning = beginning[runeStart(beginning, from):]
		if i := strings.IndexByte(beginning, ' '); i >= 0 {
			beginning = beginning[i+1:]
		}
		beginning = "…" + beginning
	}
	return fmt.Sprintf("[Note from the voice gateway: your previous answer was interrupted. The person heard it only up to: %q]", beginning)
}

// runeStart returns the last offset up to i at which a character begins.
func runeStart(text string, i int) int {
	for i > 0 && i < len(text) && !utf8.RuneStart(text[i]) {
		i--
	}
	return i
}
