package terminal

// Kind is what an event tells.
type Kind string

// The kinds of events, in the order of a run.
const (
	Start   Kind = "start"
	Stdout  Kind = "stdout"
	Stderr  Kind = "stderr"
	Exit    Kind = "exit"
	Timeout Kind = "timeout" // it took too long and was killed
	Failed  Kind = "error"   // it could not be started, or the gateway stopped
)

// Event is one thing that happened to a run. Its JSON is the frame that Eliza's clients know.
type Event struct {
	Type          string `json:"type"` // terminal-output
	Run           string `json:"runId"`
	Kind          Kind   `json:"event"`
	Command       string `json:"command,omitempty"`       // of start
	Data          string `json:"data,omitempty"`          // of stdout, stderr and error
	Code          *int   `json:"code,omitempty"`          // of exit; 1 for a signal
	MaxDurationMS int64  `json:"maxDurationMs,omitempty"` // of start and timeout
}
