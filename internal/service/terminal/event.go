package terminal

// Kind is what an event tells.
type eventKind string

// The kinds of events, in the order of a run.
const (
	kindStart   eventKind = "start"
	Stdout      eventKind = "stdout"
	Stderr      eventKind = "stderr"
	kindExit    eventKind = "exit"
	kindTimeout eventKind = "timeout" // it took too long and was killed
	kindFailed  eventKind = "error"   // it could not be started, or the gateway stopped
)

// Event is one thing that happened to a run. Its JSON is the frame that Eliza's clients know.
type Event struct {
	Type          string    `json:"type"` // terminal-output
	Run           string    `json:"runId"`
	Kind          eventKind `json:"event"`
	Command       string    `json:"command,omitempty"`       // of start
	Data          string    `json:"data,omitempty"`          // of stdout, stderr and error
	Code          *int      `json:"code,omitempty"`          // of exit; 1 for a signal
	MaxDurationMS int64     `json:"maxDurationMs,omitempty"` // of start and timeout
}
