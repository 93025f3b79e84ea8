package recording

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"
)

// Head says what a recording is of. It is the frame of the first line.
type Head struct {
	Turn         string `json:"turn,omitempty"`
	Conversation string `json:"conversation,omitempty"`
	Agent        string `json:"agent,omitempty"`
	Kind         string `json:"kind,omitempty"` // of the agent
	Dialect      string `json:"dialect,omitempty"`
}

// Writer writes the lines of a recorder. It is not safe for concurrent use.
type Writer struct {
	w      io.Writer
	client string
}

// NewWriter returns a writer of what went over one connection, by its name.
func NewWriter(w io.Writer, client string) *Writer { return &Writer{w, client} }

// written is a line as it is written.
type entry struct {
	Time   int64  `json:"t"`
	Client string `json:"c"`
	Dir    string `json:"dir"`
	Frame  any    `json:"frame,omitempty"`
	Raw    string `json:"raw,omitempty"`
	Base64 string `json:"base64,omitempty"`
}

// Open writes the head, or that a further body begins.
func (w *Writer) Open(at int64, h Head) error {
	return w.line(entry{Time: at, Dir: dirOpen, Frame: h})
}

// Message writes a whole message: JSON as it is, anything else as a string.
func (w *Writer) Message(at int64, fromClient bool, data []byte) error {
	l := entry{Time: at, Dir: direction(fromClient)}
	switch {
	case json.Valid(data):
		l.Frame = json.RawMessage(data)
	case utf8.Valid(data):
		l.Frame = string(data)
	default:
		l.Base64 = base64.StdEncoding.EncodeToString(data)
	}
	return w.line(l)
}

// Piece writes a piece of a body.
func (w *Writer) Piece(at int64, fromClient bool, data []byte) error {
	l := entry{Time: at, Dir: direction(fromClient)}
	if utf8.Valid(data) {
		l.Raw = string(data)
	} else {
		l.Base64 = base64.StdEncoding.EncodeToString(data)
	}
	return w.line(l)
}

// Lost writes that so many bytes are missing here.
func (w *Writer) Gap(at, n int64) error { return w.line(entry{Time: at, Dir: "lost", Frame: n}) }

// Close writes that the connection has ended.
func (w *Writer) Close(at int64) error { return w.line(entry{Time: at, Dir: dirClose}) }

func direction(fromClient bool) string {
	if fromClient {
		return "out"
	}
	return dirIn
}

func (w *Writer) line(l entry) error {
	l.Client = w.client
	enc := json.NewEncoder(w.w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(l); err != nil {
		return fmt.Errorf("recording: write: %w", err)
	}
	return nil
}
