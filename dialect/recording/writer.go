package recording

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"
)

// Head describes a recording: which turn of which agent it was. It is the frame of the first line.
type Head struct {
	Turn         string `json:"turn,omitempty"`
	Conversation string `json:"conversation,omitempty"`
	Agent        string `json:"agent,omitempty"`
	Kind         string `json:"kind,omitempty"` // of the agent
	Dialect      string `json:"dialect,omitempty"`
}

// Writer writes the recorder form, one Write call to Output for each line. It is not safe for concurrent use.
//
// Call Open first, then Message or Piece in the order of arrival, then Close. Times are epoch milliseconds.
type Writer struct {
	Output io.Writer
	Client string // the name of the connection, which is in every line
}

// entry is the encoding side of recorded, with the fields in the order of the file.
type entry struct {
	Time   int64  `json:"t"`
	Client string `json:"c"`
	Dir    string `json:"dir"`
	Frame  any    `json:"frame,omitempty"`
	Raw    string `json:"raw,omitempty"`
	Base64 string `json:"base64,omitempty"`
}

// Open writes h and begins a body. Another call begins another body, for example after a reconnect.
func (w *Writer) Open(at int64, h Head) error {
	return w.line(entry{Time: at, Dir: dirOpen, Frame: h})
}

// Message writes a complete message: JSON unchanged, other text as a string, other bytes in base64. fromClient is true for messages
// that the gateway sent; readers skip them.
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

// Piece writes a piece of a body, which may end in the middle of a frame or character.
func (w *Writer) Piece(at int64, fromClient bool, data []byte) error {
	l := entry{Time: at, Dir: direction(fromClient)}
	if utf8.Valid(data) {
		l.Raw = string(data)
	} else {
		l.Base64 = base64.StdEncoding.EncodeToString(data)
	}
	return w.line(l)
}

// Gap records that n bytes are missing here: the capture dropped them because its queue or the disk was full. Readers skip the line, so the
// messages or pieces around the gap follow each other directly.
func (w *Writer) Gap(at, n int64) error { return w.line(entry{Time: at, Dir: "lost", Frame: n}) }

// Close records that the connection has ended. It doesn't close the underlying writer.
func (w *Writer) Close(at int64) error { return w.line(entry{Time: at, Dir: dirClose}) }

// direction returns the dir of a line. Readers skip "out", the gateway's own messages.
func direction(fromClient bool) string {
	if fromClient {
		return "out"
	}
	return dirIn
}

// line writes an entry of the recording.
func (w *Writer) line(l entry) error {
	l.Client = w.Client
	enc := json.NewEncoder(w.Output)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(l); err != nil {
		return fmt.Errorf("recording: write: %w", err)
	}
	return nil
}
