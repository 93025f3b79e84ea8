package openclaw

import "github.com/leat-dev/leat/agent"

var _ agent.Compactor = (*gatewayAgent)(nil)

// CompactCommand implements [agent.Compactor]. It is a command of OpenClaw's chats, which needs no more rights than a message;
// the method sessions.compact is for administrators.
func (a *gatewayAgent) CompactCommand() string { return "/compact" }
