package agent

import "encoding/json"

// Signal is an event of an upstream outside turns, such as an action, a heartbeat or progress of a training. It has the form of an event
// of Eliza's sockets, and the gateway publishes it as a signal.
type Signal struct {
	Type       string // agent_event, heartbeat_event or training_event
	Stream     string
	RunID      string
	Seq        *int64 // within the run
	SessionKey string
	AgentID    string
	// Conversation is the conversation that the event belongs to. If it is empty, only operators see the event.
	Conversation string
	Payload      json.RawMessage
}

// Signaller is an agent that publishes signals. The gateway calls Signals once, before Start; report doesn't block.
type Signaller interface {
	Keeper
	Signals(report func(Signal))
}
