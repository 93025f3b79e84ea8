package console

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// OpenTurn returns the oldest turn that waits for an answer with its first request, or else the oldest turn that runs or is queued, or nil.
// Turns within other turns are ignored: they can't be stopped or answered on their own. A turn that waits for an
// answer comes first even if an older one runs, because the user can end that wait.
func OpenTurn(t *transcript.Transcript) (turn *transcript.Turn, request *event.Request) {
	for _, candidate := range t.Turns {
		if !candidate.Unfinished() || !candidate.Independent() {
			continue
		}
		if len(candidate.Requests) > 0 {
			r := candidate.Requests[0].Request
			return candidate, &r
		}
		if turn == nil {
			turn = candidate
		}
	}
	return turn, nil
}

// Question returns the text of a request. If the agent provides none, it names what the agent waits for.
func Question(r *event.Request) string {
	return cmp.Or(strings.TrimSpace(Clean(r.Prompt)), strings.TrimSpace("the agent is waiting for "+Clean(string(r.Kind))+" "+Clean(r.Tool)))
}

// Decide interprets a line as the answer to a request: one of the request's options or its number, a decision, or
// text. Options come first, because an agent may offer "y" or "no" with another meaning. Upper and lower case are
// equal.
//
// If decision is empty, reason is the text: the answer to a request for input, or the reason of a denial.
func Decide(text string, r *event.Request) (decision event.Decision, reason string) {
	word := strings.ToLower(strings.TrimSpace(text))
	for _, option := range r.Options {
		if strings.ToLower(option) == word {
			return event.Decision(option), ""
		}
	}
	if n, err := strconv.Atoi(word); err == nil && n >= 1 && n <= len(r.Options) {
		return event.Decision(r.Options[n-1]), ""
	}
	// A request for input takes every line as it is, except its options.
	if r.Kind == event.RequestInput {
		return "", text // "yes" may be the requested text
	}
	switch event.Decision(word) {
	case "y", "yes", event.Approve:
		return event.Approve, ""
	case "n", "no", event.Deny:
		return event.Deny, ""
	}
	return "", text
}
