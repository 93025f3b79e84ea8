// What a client has of each part of an answer.

package vercel

import (
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// partKey identifies a part within a turn.
type partKey struct{ message, part string }

// partState is what the client has of a part.
//
// It is compared with the part itself, so it contains only what can't be derived from that: how much of it was sent, and its step in the
// client's message.
type partState struct {
	key   partKey
	index int // its place among the parts of the turn
	// isDirty is true if the part has changed since it was sent.
	isDirty bool
	// isBegun is true if the client has the part. step is the one that it is in.
	isBegun bool
	step    int
	// isOpen is true if the client's text can grow by a delta. After a wait or its end it can't.
	isOpen bool
	// text is what the client has of a text or reasoning, or the JSON of a status or data part. fixed is the beginning of it that is in earlier
	// steps, which can't be replaced.
	text, fixed string
	// isContradicted is true if the client has text that was taken back since.
	isContradicted bool
	// isUnclear is true if an earlier response may have sent text that was taken back. The client gets nothing more of the part.
	isUnclear bool

	// Of a tool.
	isCall      bool
	input       string // that the client has in deltas
	hasInput    bool   // the client has the complete input
	outputSize  int    // of the newest preliminary output
	isCompleted bool   // the client has the result
}

// id returns the part's id in the stream. It is unique in the turn and the same in each response.
func (k partKey) id() string { return k.message + "." + k.part }

// reset forgets what the client has, after a step was reset.
func (p *partState) reset() {
	*p = partState{key: p.key, index: p.index, text: p.fixed, fixed: p.fixed}
}

// textChunk returns the type of a chunk for a text or reasoning part.
func textChunk(p *transcript.Part, suffix string) string {
	if p.Kind == event.KindReasoning {
		return "reasoning-" + suffix
	}
	return "text-" + suffix
}

// dataName returns the type of the chunk for a part of kind data.
func dataName(p *transcript.Part) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '-'
	}, p.Name)
	if name == "" {
		name = "part"
	}
	return "data-" + name
}
