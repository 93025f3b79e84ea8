// What the requests of turns are about.

package chats

import (
	"slices"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// IsClientTool reports whether a request calls a tool that the client runs.
func IsClientTool(r *event.Request) bool { return r.Kind == event.RequestInput && r.Tool != "" }

// ToolOf returns the unfinished call that an approval is about and its message, or nil if it isn't known. The messages are those of the turn.
func ToolOf(messages []*transcript.Message, r *event.Request) (message *transcript.Message, tool *transcript.Part) {
	for _, m := range slices.Backward(messages) {
		for _, p := range slices.Backward(m.Parts) {
			if p.Kind != event.KindTool || IsComplete(p) {
				continue
			}
			if p.ID == r.Part || r.Part == "" && p.Name == r.Tool { // some agents name the tool only
				return m, p
			}
		}
	}
	return nil, nil
}
