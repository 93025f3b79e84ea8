package agent

import "encoding/json"

// Signal is what an agent's upstream tells beside its turns: what it is about, that it lives, how its training goes. It is an
// event of Eliza's sockets, and becomes a signal of the gateway's log.
type Signal struct {
	Type       string // agent_event, heartbeat_event or training_event
	Stream     string
	RunID      string
	Seq        *int64 // within the run
	SessionKey string
	AgentID    string
	// Conversation is what it is about; empty: nobody but the operator sees it.
	Conversation string
	Payload      json.RawMessage
}

// Signaller is an agent that tells of signals. Signals is called once, before its Start; tell does not block.
type Signaller interface {
	Keeper
	Signals(tell func(Signal))
}
