// Tools that the agent runs itself, for formats in which a call has arguments and one result.

package chats

import (
	"cmp"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// IsComplete reports whether a tool has its result.
func IsComplete(p *transcript.Part) bool {
	return p.Final || p.State != "" && p.State != event.PartRunning
}

// HasAllInput reports whether a tool has been called: its input doesn't grow any more.
func HasAllInput(p *transcript.Part) bool {
	return IsComplete(p) || p.Len(event.Output) > 0 || p.Len(event.Stderr) > 0
}

// ToolName returns the name of a tool. Clients need one.
func ToolName(p *transcript.Part) string { return cmp.Or(p.Name, "tool") }

// Results of calls without an output.
const (
	textDenied     = "The tool was not allowed to run."
	textUnfinished = "The answer ended before the tool did."
)

// ToolOutput returns what a tool has written so far. Both streams of a command are one text, because a result can't have two.
func ToolOutput(p *transcript.Part) string {
	output := p.Text(event.Output)
	if text := p.Text(event.Stderr); text != "" {
		output = strings.TrimSuffix(output, "\n") + "\n" + text
	}
	return strings.TrimPrefix(output, "\n")
}

// ToolResult returns the result of a call for people and models. Its text says that it is a failure, because some formats have no field for that.
func ToolResult(p *transcript.Part) string {
	switch p.State {
	case event.PartDone:
		return ToolOutput(p)
	case event.PartDenied:
		return textDenied
	case event.PartFailed:
		message := ""
		if p.Error != nil {
			message = p.Error.Message
		}
		return "Error: " + cmp.Or(message, strings.TrimSpace(ToolOutput(p)), "the tool failed")
	}
	return textUnfinished
}
