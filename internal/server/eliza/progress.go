package eliza

import (
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// progress is the current activity of a turn. Eliza's newest clients show it, older ones ignore it.
type progress struct {
	Type     string `json:"type"`
	Kind     string `json:"kind"` // thinking, streaming, running_action or running_tool
	Label    string `json:"label,omitempty"`
	ToolName string `json:"toolName,omitempty"`
}

// progress returns the activity of the newest part that still grows. If no part grows and the newest one is a text, it returns
// streaming. Otherwise a process that exits after its text would be shown as thinking for a moment.
//
// An open request comes first: while the agent waits for a person, nothing else is going on. Otherwise the
// messages and their parts are examined from the newest to the oldest, and the first part that is not
// final decides. Without any, the turn is thinking, with the phase that the agent reported as the label.
func (a answer) progress() progress {
	thinking := progress{Type: "status", Kind: "thinking", Label: a.turn.Phase}
	p := thinking
	if a.turn.State == transcript.TurnWaiting && len(a.turn.Requests) > 0 {
		r := a.turn.Requests[0]
		return progress{Type: "status", Kind: "running_tool", ToolName: r.Tool, Label: r.Prompt}
	}
	newest := true
	for i := len(a.messages) - 1; i >= 0; i-- {
		for j := len(a.messages[i].Parts) - 1; j >= 0; j-- {
			part := a.messages[i].Parts[j]
			if part.Final {
				if newest && part.Kind == event.KindText {
					p = progress{Type: "status", Kind: "streaming"}
				}
				newest = false
				continue
			}
			newest = false
			switch part.Kind {
			case event.KindText:
				return progress{Type: "status", Kind: "streaming"}
			case event.KindStatus:
				return progress{Type: "status", Kind: "running_action"}
			case event.KindTool:
				return progress{Type: "status", Kind: "running_tool", ToolName: part.Name, Label: part.Title}
			case event.KindReasoning:
				return thinking
			}
		}
	}
	return p
}

// equals reports whether a client would show q in the same way. Labels are ignored, because a title that grows would cause a
// frame for each change.
func (p progress) equals(q progress) bool { return p.Kind == q.Kind && p.ToolName == q.ToolName }
