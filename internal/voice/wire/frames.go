package wire

// readyFrame is the first frame of a connection.
type readyFrame struct {
	Type        string `json:"type"` // "ready"
	Generation  int64  `json:"generation"`
	Speech      bool   `json:"speech"`      // answers are spoken
	Recognition bool   `json:"recognition"` // speech is recognised
	VAD         string `json:"vad"`         // "client" or "server": where utterances are detected
	Detector    bool   `json:"detector,omitempty"`
	Session     string `json:"session,omitempty"`
}

// transcriptFrame is the recognised part of what the person says.
type transcriptFrame struct {
	Type  string `json:"type"` // "transcript"
	Text  string `json:"text"`
	Final bool   `json:"final"`
	Key   string `json:"key,omitempty"` // of the message that a final text becomes
}

// pongFrame answers a ping.
type pongFrame struct {
	Type string `json:"type"` // "pong"
}

// clientFrame is a frame of a client. Frames of unknown types are ignored, so that newer clients work.
type clientFrame struct {
	Type       string `json:"type"`
	Played     *int64 `json:"played"`     // interrupt: samples of the generation
	Samples    int64  `json:"samples"`    // played
	Generation int64  `json:"generation"` // interrupt, played; 0 means the current one
	Text       string `json:"text"`       // text
	Key        string `json:"key"`        // text: the idempotency key
}

// The codes of error frames. The session has further ones.
const (
	codeNoSpeech          = "no_speech"
	codeNoRecognition     = "no_recognition"
	codeRecognitionFailed = "recognition_failed"
	codeNotSent           = "not_sent"
	codeInvalid           = "invalid"
	codeTooFast           = "too_fast"
	codeReplaced          = "replaced"
	codeIdle              = "idle"
	codeBusy              = "busy"
)
