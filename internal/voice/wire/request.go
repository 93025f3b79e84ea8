package wire

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/coder/websocket"
)

// Request describes a connection. Listener is required.
type Request struct {
	// Listener identifies the conversation and the person. A newer connection with the same value replaces this one.
	Listener string
	// Session is the token of a visitor's session, which the first frame contains. It is empty for users.
	Session string
	// Voice and Language override those of [Options]. They may be empty.
	Voice, Language string
	// DetectsSpeech finds utterances in the microphone's audio, for a client that doesn't mark them.
	DetectsSpeech bool
	// Detector tells the client that the gateway has a speech detector for it.
	Detector bool
	// After is where an earlier connection stopped.
	After position
	// Farewell returns the close code for the cause of the context's end. If it is nil, or the code is 0, the gateway shuts down.
	Farewell func(cause error) (code websocket.StatusCode, reason string)
}

// position is how far a client has received an answer.
type position struct {
	Turn    string
	Start   int   // of the last caption, in bytes of the visible text
	Samples int64 // since the sample of that caption
}

// name is what voices and languages may be called. Engines that are programs take names of files too, which have a slash.
var name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._+-]{0,63}$`)

// ParseRequest reads the parameters of a query. Its errors may be shown to the client.
func ParseRequest(query url.Values) (Request, error) {
	r := Request{Voice: query.Get("voice"), Language: query.Get("language")}
	for key, value := range map[string]string{"voice": r.Voice, "language": r.Language} {
		if value != "" && !name.MatchString(value) {
			return r, fmt.Errorf("%w: %s: %q is not a name", errInvalid, key, value)
		}
	}
	switch vad := query.Get("vad"); vad {
	case "", "client":
	case "server":
		r.DetectsSpeech = true
	default:
		return r, fmt.Errorf("%w: vad: unknown value %q; use client or server", errInvalid, vad)
	}
	var err error
	if after := query.Get("after"); after != "" {
		r.After, err = parsePosition(after)
	}
	return r, err
}

// parsePosition parses "TURN:START:SAMPLES".
func parsePosition(text string) (p position, err error) {
	fields := strings.Split(text, ":")
	if len(fields) == 3 {
		p.Turn = fields[0]
		if p.Start, err = strconv.Atoi(fields[1]); err == nil {
			p.Samples, err = strconv.ParseInt(fields[2], 10, 64)
		}
	}
	if len(fields) != 3 || err != nil || p.Turn == "" || p.Start < 0 || p.Samples < 0 {
		return position{}, fmt.Errorf("%w: after: %q is not a position; use TURN:START:SAMPLES", errInvalid, text)
	}
	return p, nil
}
