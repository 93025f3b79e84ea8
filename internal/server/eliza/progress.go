package eliza

import (
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// progress is what a turn is about just now, as the latest clients of Eliza show it; older ones ignore it.
type progress struct {
	Type     string `json:"type"`
	Kind     string `json:"kind"` // thinking, streaming, running_action or running_tool
	Label    string `json:"label,omitempty"`
	ToolName string `json:"toolName,omitempty"`
}

// progress returns what the turn does: that of the newest part that still grows. If none grows and the newest is a text, the answer
// counts as streaming: an agent that exits after its text would otherwise be shown to think for a moment before it is done.
func (a answer) progress() progress {
	thinking := progress{Type: "status", Kind: "thinking", Label: a.turn.Phase}
	p := thinking
	if a.turn.State == transcript.Waiting && len(a.turn.Requests) > 0 {
		r := a.turn.Requests[0]
		return progress{Type: "status", Kind: "running_tool", ToolName: r.Tool, Label: r.Prompt}
	}
	newest := true
	for i := len(a.messages) - 1; i >= 0; i-- {
		for j := len(a.messages[i].Parts) - 1; j >= 0; j-- {
			part := a.messages[i].Parts[j]
			if part.Ended {
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

// same reports whether a client would show q no differently. A label alone makes no new frame: titles may grow.
func (p progress) same(q progress) bool { return p.Kind == q.Kind && p.ToolName == q.ToolName }
