package terminal

// eventKind is the kind of an event.
type eventKind string

// The kinds of events, in the order of a run. Clients receive them, so they must not change.
const (
	kindStart   eventKind = "start"
	Stdout      eventKind = "stdout"
	Stderr      eventKind = "stderr"
	kindExit    eventKind = "exit"
	kindTimeout eventKind = "timeout" // the command exceeded MaxDuration and was ended
	kindFailed  eventKind = "error"   // the command couldn't be started, or the gateway stopped
)

// Event is one step of a run. Its JSON is the frame that Eliza's clients expect.
type Event struct {
	Type          string    `json:"type"` // always terminal-output
	Run           string    `json:"runId"`
	Kind          eventKind `json:"event"`
	Command       string    `json:"command,omitempty"`       // only in start
	Data          string    `json:"data,omitempty"`          // only in stdout, stderr and error
	Code          *int      `json:"code,omitempty"`          // only in exit; 1 if a signal ended the command
	MaxDurationMS int64     `json:"maxDurationMs,omitempty"` // only in start and timeout
}
