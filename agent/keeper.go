package agent

import "log/slog"

// Keeper is an agent with something that runs between turns, such as a connection or a child process. The gateway calls Start once, before
// the first turn. Start doesn't block; later errors are logged. Close stops everything and waits for its end. It may be called without
// Start.
type Keeper interface {
	Agent
	Start(log *slog.Logger)
	Close()
}
