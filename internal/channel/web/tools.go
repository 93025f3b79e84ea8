package web

import (
	"encoding/json"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// maxSummary is the length of a tool call's summary in characters.
const maxSummary = 80

// summaryKeys are the arguments that say best what a tool call does, in order of preference.
var summaryKeys = []string{"filePath", "file_path", "path", "command", "query", "pattern", "url"}

// summary returns the most telling argument of a tool call as one short line, or else the title that the agent gave
// the call. The input grows while the call is written, and it is parsed only when it looks complete, since each
// attempt reads all of it.
func summary(p *transcript.Part) string {
	text := p.Title
	var arguments map[string]any
	if input := p.Text(event.Input); strings.HasSuffix(strings.TrimSpace(input), "}") && json.Unmarshal([]byte(input), &arguments) == nil {
		for _, key := range summaryKeys {
			if v, ok := arguments[key].(string); ok && v != "" {
				text = v
				break
			}
		}
	}
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > maxSummary {
		return string(r[:maxSummary-1]) + "…"
	}
	return text
}

// toolState returns the state of a tool call as clients get it: running, done, failed or denied. A call that was running when its
// turn ended has failed.
func toolState(p *transcript.Part, isTurnRunning bool) string {
	switch {
	case p.State == event.PartDone || p.State == event.PartFailed || p.State == event.PartDenied:
		return string(p.State)
	case isTurnRunning:
		return string(event.PartRunning)
	}
	return string(event.PartFailed)
}
