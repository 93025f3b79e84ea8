// The JSON frames of a voice connection that a session makes, as docs/protocol.md specifies them.

package voice

// Frame is a JSON frame to the client.
type Frame any

// state is what a voice connection does.
type state string

// The states.
const (
	stateListening state = "listening" // nothing is or will be spoken
	stateThinking  state = "thinking"  // a turn runs, and nothing of it is spoken yet
	stateSpeaking  state = "speaking"
)

// stateFrame reports a change of state.
type stateFrame struct {
	Type       string `json:"type"` // "state"
	State      state  `json:"state"`
	Generation int64  `json:"generation"`
	Turn       string `json:"turn,omitempty"`
}

// captionFrame precedes the first sample of a sentence.
type captionFrame struct {
	Type       string `json:"type"` // "caption"
	Turn       string `json:"turn"`
	Start      int    `json:"start"` // bytes of the visible text of the turn
	End        int    `json:"end"`
	Sample     int64  `json:"sample"` // of the generation; negative if the client has the beginning of the sentence from an earlier connection
	Generation int64  `json:"generation"`
	Text       string `json:"text"` // as it is said aloud
}

// doneFrame follows the last sample of an answer.
type doneFrame struct {
	Type       string `json:"type"` // "stream_done"
	Turn       string `json:"turn"`
	Generation int64  `json:"generation"`
	Samples    int64  `json:"samples"` // of the generation so far
}

// ErrorFrame reports a problem. The connection stays open.
type ErrorFrame struct {
	Type    string `json:"type"` // "error"
	Code    string `json:"code"`
	Message string `json:"message"`
	Action  string `json:"action,omitempty"` // what the person or the operator can do
	Turn    string `json:"turn,omitempty"`
}

// Error returns the frame for a problem.
func Error(code, message, action string) ErrorFrame {
	return ErrorFrame{Type: "error", Code: code, Message: message, Action: action}
}
