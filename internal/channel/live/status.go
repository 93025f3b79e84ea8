package live

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/transcript"
)

const (
	// maxOutput is how much of a tool's output the card shows, in characters: its end. The end is shown because errors and results of
	// commands are there.
	maxOutput = 1200
	// maxSummary is how much of a tool's name and of its input the card shows, in characters.
	maxSummary = 40
	// maxRows is how many tool calls the card shows: the newest. More would not fit into a message.
	maxRows = 12
)

// summaryKeys are the arguments that say best what a tool call does, in order of preference.
var summaryKeys = []string{"filePath", "file_path", "path", "command", "query", "pattern", "url"}

// Status is what a status card shows of a running turn.
type Status struct {
	// The order of the fields is that of the card, from top to bottom.
	Iteration int // from 1, or 0 if the agent doesn't count them
	Earlier   int // tool calls that are left out
	// Tools are the newest calls, the oldest first.
	Tools []Tool
	// Elapsed is the time since the delivery began. A delivery that was interrupted begins again at zero. The time is left out of
	// comparisons, so it alone causes few edits.
	Elapsed time.Duration
}

// Tool is a row of the card. All texts are plain.
type Tool struct {
	Icon    string // for the state of the call
	Name    string
	Summary string // the most telling argument of the call, shortened, or empty
	Output  string // the end of its output, or empty
}

// newStatus returns the status of a turn, or nil if the turn has called no tool. Without tools the growing text or "typing" is enough
// to see that the agent works.
func newStatus(s *channel.Stream) *Status {
	tools, turn := s.Tools(), s.Turn()
	if len(tools) == 0 || turn == nil {
		return nil
	}
	status := &Status{Iteration: int(turn.Step), Earlier: max(0, len(tools)-maxRows)}
	for _, p := range tools[status.Earlier:] {
		status.Tools = append(status.Tools, Tool{icon(p), shorten(p.Name), summary(p), output(p)})
	}
	return status
}

// Fit returns a card as render makes it, without the outputs of the oldest calls that would make it longer than limit bytes. A call
// without its output is still worth more than a missing one, because its name and argument say what the agent does. If even all calls
// without outputs are too long, the result is too long as well, and the platform has to cut it.
func (s *Status) Fit(limit int, render func(*Status) string) string {
	fitting := *s
	fitting.Tools = slices.Clone(s.Tools)
	for i := 0; ; i++ {
		text := render(&fitting)
		if i == len(fitting.Tools) || len(text) <= limit {
			return text
		}
		fitting.Tools[i].Output = ""
	}
}

// Markdown returns a card without the elapsed time. It is also what the engine compares to find out whether the card has changed.
func (s *Status) Markdown() string {
	var b strings.Builder
	b.WriteString("🤖 **Working…**\n")
	if s.Iteration > 0 {
		fmt.Fprintf(&b, "\n🔄 Iteration %d\n", s.Iteration)
	}
	if s.Earlier > 0 {
		fmt.Fprintf(&b, "\n… %d earlier calls\n", s.Earlier)
	}
	for _, t := range s.Tools {
		fmt.Fprintf(&b, "\n%s %s", t.Icon, codeSpan(t.Name))
		if t.Summary != "" {
			b.WriteString(" " + codeSpan(t.Summary))
		}
		b.WriteByte('\n')
		if t.Output != "" {
			fence := fenceFor(t.Output)
			b.WriteString("\n" + fence + "\n" + t.Output + "\n" + fence + "\n")
		}
	}
	return b.String()
}

// Time returns the elapsed time as a card shows it. Whole seconds are enough: the card is edited every few seconds.
func (s *Status) Time() string { return "⏱ " + s.Elapsed.Truncate(time.Second).String() }

// codeSpan returns a text as code. Its backticks become quotes, because a name or a path hardly has any. An escaped backtick would be
// rendered differently by each platform.
func codeSpan(text string) string { return "`" + strings.ReplaceAll(text, "`", "'") + "`" }

// fenceFor returns a fence that doesn't occur in a text. Output of a tool often is Markdown itself, and a fence in it would end the
// block.
func fenceFor(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence
}

// icon returns the sign for the state of a tool call. An unknown state counts as running.
func icon(p *transcript.Part) string {
	switch p.State {
	case event.PartDone:
		return "✅"
	case event.PartFailed:
		return "❌"
	case event.PartDenied:
		return "🚫"
	}
	return "⏳"
}

// summary returns the most telling argument of a tool call, shortened, or else the title that the agent gave the call. The input may
// still be incomplete JSON while the agent writes it. Then there is only the title.
func summary(p *transcript.Part) string {
	var arguments map[string]any
	text := p.Title
	if json.Unmarshal([]byte(p.Text(event.Input)), &arguments) == nil {
		for _, key := range summaryKeys {
			if v, ok := arguments[key].(string); ok && v != "" {
				text = v
				break
			}
		}
	}
	return shorten(text)
}

// shorten returns a text as one line of at most maxSummary characters. Line breaks would tear the row apart.
func shorten(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > maxSummary {
		return string(r[:maxSummary-1]) + "…"
	}
	return text
}

// output returns the end of a tool's output and errors. Lines of the standard error are marked. Spaces at both ends are removed,
// because some tools end with many empty lines.
func output(p *transcript.Part) string {
	text := strings.TrimSpace(p.Text(event.Output))
	if failed := strings.TrimSpace(p.Text(event.Stderr)); failed != "" {
		text = strings.TrimSpace(text + "\n[stderr] " + strings.ReplaceAll(failed, "\n", "\n[stderr] "))
	}
	if r := []rune(text); len(r) > maxOutput {
		return "… " + string(r[len(r)-maxOutput+2:])
	}
	return text
}
