// Tool calls in the editor.

package acp

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

const (
	// runningOutput is how much of a running tool's output the editor gets, in bytes: its end. Each update has all of it again.
	runningOutput = 8 << 10
	// finalOutput is the same for a tool that has ended.
	finalOutput = 256 << 10
	// maxTitle is the limit of a title, in characters.
	maxTitle = 120
)

// toolState is what the editor has of a tool. Two equal states need no update.
type toolState struct {
	isSent        bool
	title, status string
	input, output string
}

// tool sends a tool call, and later what has changed of it.
//
// The first message of a call must be a tool_call, and later ones tool_call_update, in which a missing field stays as it is. Content is
// replaced as a whole, since the protocol has no way to append to it.
func (w *writer) tool(m *transcript.Message, p *transcript.Part, ps *partState) error {
	next := toolState{isSent: true, title: titleOf(p), status: statusOf(p), output: outputOf(p)}
	if input := p.Text(event.Input); json.Valid([]byte(input)) { // else it isn't complete
		next.input = input
	}
	// Most updates of a transcript concern other parts.
	if next == ps.tool {
		return nil
	}
	u := tool{Kind: toolUpdate, ID: partID(m, p)}
	if !ps.tool.isSent {
		u.Kind, u.Name, u.ToolKind = toolCall, p.Name, toolKind(p.Name)
	}
	if next.title != ps.tool.title {
		u.Title = next.title
	}
	if next.status != ps.tool.status {
		u.Status = next.status
	}
	if next.input != ps.tool.input {
		u.RawInput = json.RawMessage(next.input)
	}
	if next.output != ps.tool.output {
		u.Content = []toolContent{{"content", block{Type: "text", Text: next.output}}}
	}
	ps.tool = next
	w.thought = ""
	return w.send(u)
}

// statusOf returns the status of a tool. Agents that don't report states have tools that only end, which counts as a success. A tool that waits
// for a permission has no output, so it is pending.
func statusOf(p *transcript.Part) string {
	switch {
	case p.State == event.PartDone:
		return "completed"
	case p.State == event.PartFailed, p.State == event.PartDenied:
		return "failed"
	case p.Final:
		return "completed"
	case p.State == event.PartRunning || p.Len(event.Output) > 0 || p.Len(event.Stderr) > 0:
		return "in_progress"
	}
	return "pending"
}

// textDenied is the output of a tool that a person has refused.
const textDenied = "The tool was not allowed to run."

// outputOf returns the output of a tool and its errors, for people. Both streams of a command are one text. The error of the tool itself is added
// if the output doesn't have it already.
func outputOf(p *transcript.Part) string {
	output := p.Text(event.Output)
	if text := p.Text(event.Stderr); text != "" {
		output = strings.TrimSuffix(output, "\n") + "\n" + text
		output = strings.TrimPrefix(output, "\n")
	}
	switch {
	case p.State == event.PartDenied:
		return textDenied
	case p.Error != nil && p.Error.Message != "" && !strings.Contains(output, p.Error.Message):
		output = strings.TrimPrefix(output+"\n"+p.Error.Message, "\n")
	}
	limit := runningOutput
	if p.Final || p.State != "" && p.State != event.PartRunning {
		limit = finalOutput
	}
	return lastBytes(output, limit)
}

// lastBytes returns the end of a text, from the beginning of a line if that is near.
func lastBytes(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	text = text[len(text)-limit:]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	if i := strings.IndexByte(text, '\n'); i >= 0 && i < limit/2 {
		text = text[i+1:]
	}
	return "…\n" + text
}

// titleOf returns what the editor shows of a tool before it is unfolded: its title, or its name with the argument that tells most.
func titleOf(p *transcript.Part) string {
	if p.Title != "" {
		return clip(p.Title)
	}
	name := cmp.Or(p.Name, "tool")
	var input map[string]any
	if json.Unmarshal([]byte(p.Text(event.Input)), &input) != nil {
		return clip(name)
	}
	for _, key := range []string{"command", "cmd", "file_path", "path", "pattern", "query", "url", "expression"} {
		if value, ok := input[key].(string); ok && value != "" {
			return clip(name + ": " + value)
		}
	}
	return clip(name)
}

// clip returns a text as one line of at most maxTitle characters.
func clip(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) <= maxTitle {
		return text
	}
	return string([]rune(text)[:maxTitle-1]) + "…"
}

// kinds are words in the names of tools, by the kind whose icon an editor shows. The first match counts.
var kinds = []struct {
	kind  string
	words []string
}{
	{"execute", []string{"bash", "shell", "exec", "terminal", "command", "run"}},
	{"edit", []string{"edit", "write", "patch", "replace", "create_file"}},
	{"delete", []string{"delete", "remove"}},
	{"move", []string{"move", "rename"}},
	{"search", []string{"grep", "glob", "search", "find"}},
	{"fetch", []string{"fetch", "http", "browse", "web"}},
	{"read", []string{"read", "view", "open", "list", "cat"}},
	{"think", []string{"think", "plan"}},
}

// toolKind returns the kind of a tool for the editor's icon. Agents name their tools as they like, so it is a guess, and nothing depends on it.
func toolKind(name string) string {
	name = strings.ToLower(name)
	for _, k := range kinds {
		if slices.ContainsFunc(k.words, func(word string) bool { return strings.Contains(name, word) }) {
			return k.kind
		}
	}
	return "other"
}
