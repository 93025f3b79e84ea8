package acp

import (
	"encoding/json"

	"github.com/leat-dev/leat/dialect"
)

// progress recognizes the updates of a session that show work on the prompt, even if they give no operations, such as usage. Lists of
// commands, modes and titles don't: an agent may send them at any time.
func progress(f dialect.Frame) bool {
	var in struct {
		Method string `json:"method"`
		Params struct {
			Update struct {
				Kind string `json:"sessionUpdate"`
			} `json:"update"`
		} `json:"params"`
	}
	if json.Unmarshal(f.Data, &in) != nil || in.Method != "session/update" {
		return false
	}
	switch in.Params.Update.Kind {
	case "agent_message_chunk", "agent_thought_chunk", "agent_message", "agent_thought", "tool_call", "tool_call_update", "plan",
		"usage_update", "state_update":
		return true
	}
	return false
}
