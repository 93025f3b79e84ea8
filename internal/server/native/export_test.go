package native

// The tests compare these limits with docs/protocol.md, and exceed them.
const (
	MaxCommand       = maxCommand
	MaxSubscriptions = maxSubscriptions
	MaxPending       = maxPending
)
