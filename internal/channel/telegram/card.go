package telegram

import (
	"encoding/json"
	"fmt"
	"html"
	"strings"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/transcript"
)

const (
	// maxOutput is how much of a tool's output the card shows, in characters: its end.
	maxOutput = 1200
	// maxSummary is how much of a tool's name and of its input the card shows, in characters.
	maxSummary = 40
	// maxRows is how many tool calls the card shows: the newest. More would not fit into a message.
	maxRows = 12
	// maxCard is the limit of the card's visible text, in UTF-16 units; a message may have 4096.
	maxCard = 4000
)

// summaryKeys are the arguments that say best what a tool call does, in order of preference.
var summaryKeys = []string{"filePath", "file_path", "path", "command", "query", "pattern", "url"}

// card returns the status card of a turn as HTML, without the elapsed time, or "" if the turn has called no tool. Outputs are
// dropped from the oldest call on until the card fits into a message.
func card(s *channel.Stream) string {
	tools, turn := s.Tools(), s.Turn()
	if len(tools) == 0 || turn == nil {
		return ""
	}
	var head strings.Builder
	head.WriteString("🤖 <b>Working…</b>\n")
	if turn.Step > 0 {
		fmt.Fprintf(&head, "\n🔄 Iteration %d\n", turn.Step)
	}
	if surplus := len(tools) - maxRows; surplus > 0 {
		fmt.Fprintf(&head, "\n… %d earlier calls\n", surplus)
		tools = tools[surplus:]
	}
	for withOutput := 0; ; withOutput++ {
		var b strings.Builder
		b.WriteString(head.String())
		for i, p := range tools {
			b.WriteString("\n" + row(p))
			if text := output(p); text != "" && i >= withOutput {
				b.WriteString("\n<pre>" + html.EscapeString(text) + "</pre>")
			}
		}
		if text := b.String(); withOutput >= len(tools) || len(text) <= maxCard {
			return text
		}
	}
}

// withTime adds the elapsed time to a card.
func withTime(card string, elapsed time.Duration) string {
	return fmt.Sprintf("%s\n\n⏱ %s", card, elapsed.Truncate(time.Second))
}

// row returns the line of a tool call: an icon for its state, its name and a summary of its input.
func row(p *transcript.Part) string {
	icon := "⏳"
	switch p.State {
	case event.PartDone:
		icon = "✅"
	case event.PartFailed:
		icon = "❌"
	case event.PartDenied:
		icon = "🚫"
	}
	line := icon + " <code>" + html.EscapeString(shorten(p.Name)) + "</code>"
	if text := summary(p); text != "" {
		line += "(" + html.EscapeString(text) + ")"
	}
	return line
}

// summary returns the most telling argument of a tool call, shortened, or else the title that the agent gave the call.
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

// shorten returns a text as one line of at most maxSummary characters.
func shorten(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > maxSummary {
		return string(r[:maxSummary-1]) + "…"
	}
	return text
}

// output returns the end of a tool's output and errors. Lines of the standard error are marked.
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
