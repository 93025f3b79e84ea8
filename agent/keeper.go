package agent

import "log/slog"

// Keeper is an agent that keeps something running between its turns. Start is called once before the first turn and does
// not wait; what goes wrong later goes to the log. Close ends what runs and waits for it; it may come without a Start.
type Keeper interface {
	Agent
	Start(log *slog.Logger)
	Close()
}
