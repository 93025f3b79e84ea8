// Tools that the agent runs itself.

package langgraph

import (
	"bytes"
	"encoding/json"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// callID returns the id of a call. The agent's own id may recur in another turn, so it is not used.
func callID(message string, p *transcript.Part) string { return message + "." + p.ID }

// argsOf returns the arguments of a call, which must be an object. An input that isn't one is the only argument.
func argsOf(p *transcript.Part) json.RawMessage {
	input := bytes.TrimSpace([]byte(p.Text(event.Input)))
	switch {
	case len(input) == 0:
		return json.RawMessage("{}")
	case input[0] == '{' && json.Valid(input):
		return input
	}
	return jsonOf(map[string]string{"input": string(input)})
}
