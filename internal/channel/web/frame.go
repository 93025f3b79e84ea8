package web

import (
	"bytes"
	"encoding/json"
)

// The types of frames. The first three are those of the seed; clients that know only them can ignore the others.
const (
	typeStream  = "stream"      // the text of the answer grows by Delta
	typeDone    = "stream_done" // the answer is complete
	typeMessage = "message"     // a message at once: a reply to a command, a notice, or the error that ends a turn

	typeSession  = "session"  // the token of the session
	typeHistory  = "history"  // the conversation so far; it replaces everything before
	typeUser     = "user"     // a message of the visitor was received
	typeTyping   = "typing"   // a turn has begun
	typeReplace  = "replace"  // the text of the answer is now Text
	typeTool     = "tool"     // a tool call has begun or changed
	typeMedia    = "media"    // a file of the answer
	typeQuestion = "question" // the turn waits for the visitor
	typeAnswered = "answered" // a question is closed
	typeError    = "error"    // a frame of the client was refused
	typePong     = "pong"
)

// frame is a frame to a client. Which fields it has depends on its type.
type frame struct {
	Type string `json:"type"`
	// Delta, Content and Text are Markdown. They come from agents and people, so clients must not treat them as HTML.
	Delta   string `json:"delta,omitempty"`   // stream
	Content string `json:"content,omitempty"` // message, user
	Text    string `json:"text,omitempty"`    // replace, question; an empty text is left out

	Session  string           `json:"session,omitempty"`  // session
	Messages []historyMessage `json:"messages,omitempty"` // history, oldest first
	Earlier  bool             `json:"earlier,omitempty"`  // history: it lacks the oldest messages

	Key      string   `json:"key,omitempty"`      // user, error: the client's own id of the message
	Message  string   `json:"message,omitempty"`  // user: the id of the message in the conversation and in histories
	Question string   `json:"question,omitempty"` // question, answered
	Choices  []string `json:"choices,omitempty"`  // question
	Reason   string   `json:"reason,omitempty"`   // error
	Retry    float64  `json:"retry,omitempty"`    // error: seconds until the next attempt may succeed

	Call    string `json:"call,omitempty"` // tool: the id of the call
	Name    string `json:"name,omitempty"` // tool
	State   string `json:"state,omitempty"`
	Summary string `json:"summary,omitempty"`
	Files   []file `json:"files,omitempty"` // media, user

	Agent string `json:"agent,omitempty"` // typing
	Turn  string `json:"turn,omitempty"`  // of all frames about an answer
	// ID is the number of the frame. It is 0 for frames that aren't entries of the room, such as an error or a pong. A
	// client resumes after the last number that isn't 0.
	ID int64 `json:"id,omitempty"`
}

// file is a file of an answer or of a message.
type file struct {
	URL  string `json:"url,omitempty"` // absolute, or relative to the address of the widget
	Name string `json:"name,omitempty"`
	MIME string `json:"mime,omitempty"`
	Size int64  `json:"size,omitempty"` // bytes
	Alt  string `json:"alt,omitempty"`
}

// plain returns the frame as a client gets it that uses nothing but the seed's frames: those of the seed have only
// the seed's fields. Frames of other types are sent as they are, since such a client ignores them.
func (f frame) plain() frame {
	switch f.Type {
	case typeStream:
		return frame{Type: f.Type, Delta: f.Delta}
	case typeDone:
		return frame{Type: f.Type}
	case typeMessage:
		return frame{Type: f.Type, Content: f.Content}
	}
	return f
}

// encode returns the frame as JSON.
func (f frame) encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // the frame is not part of a page
	err := e.Encode(f)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// size estimates the memory of a frame in a room, in bytes. 300 stands for the struct and its short texts. A wrong
// estimate only shifts the limit of a room.
func (f *frame) size() int {
	n := 300 + len(f.Delta) + len(f.Content) + len(f.Text) + len(f.Summary)
	for _, c := range f.Choices {
		n += len(c)
	}
	return n
}
