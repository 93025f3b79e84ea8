package llmtest

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"time"
)

// Fault describes how a call fails. A fault applies to one call; see [Server.Fail]. With After 0 not even the
// frames before the first piece are sent, except by Inside, whose error follows those frames.
type Fault struct {
	Kind FaultKind
	// After is the number of pieces that are sent before the fault. A larger number than there are pieces means
	// all of them.
	After int

	// Status, Says (the error type), Message and Header are the response of a Status fault. An Inside fault uses Says and Message.
	Status        int
	Says, Message string
	Header        http.Header
}

// FaultKind is the kind of a fault. Those that break a connection must be repaired by a retry if nothing was
// shown, and must otherwise fail the turn; Twice and AfterEnd must not change the answer.
type FaultKind int

// The kinds of faults.
const (
	noFault  FaultKind = iota
	Status             // a response with an error status
	Inside             // an error inside the stream
	Close              // the body ends before the answer is complete
	Half               // the body ends in the middle of a frame
	Reset              // the connection is reset
	Silence            // the server stops sending, but the connection stays open
	Beat               // the server sends only keep-alives
	Loris              // a frame arrives byte by byte and never ends
	Garbage            // the server sends invalid frames
	Twice              // the frames that end the answer are sent twice
	AfterEnd           // pieces are sent again after the end
)

// stream sends an answer with its fault. It flushes after each frame, so that a client sees the frames one by
// one.
//
// The frames of an answer are three groups: those before the first piece, one for each piece, and those that
// end the answer. Every fault except Twice and AfterEnd sends the frames up to After pieces, and then fails in
// its own way. Silence, Beat and Loris last until the client disconnects: if the agent has no limit on silence,
// the test hangs instead of passing.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, raw []byte, f Fault) {
	w.Header().Set("Content-Type", s.api.media)
	s.mu.Lock()
	pieces := s.pieces
	frames, end := s.api.frames(pieces)
	if len(s.answers) > 0 && f.Kind == noFault {
		frames, s.answers = answers[s.kind](s.answers[0]), s.answers[1:]
	}
	s.mu.Unlock()
	if s.background(w, r, raw, frames, f) {
		return
	}
	write := func(texts ...string) {
		for _, b := range texts {
			if _, err := io.WriteString(w, b); err != nil {
				return
			}
			if err := http.NewResponseController(w).Flush(); err != nil {
				return
			}
		}
	}
	if f.Kind == noFault {
		write(frames...)
		return
	}
	// frames[firstPiece:end] are the pieces.
	firstPiece := end - len(pieces)
	at := min(firstPiece+f.After, end)
	switch f.Kind {
	case Twice:
		write(frames...)
		write(frames[end:]...)
		return
	case AfterEnd:
		write(frames...)
		write(frames[firstPiece:end]...)
		return
	}
	if f.After == 0 && f.Kind != Inside {
		at = 0 // not even the frames before the first piece
	}
	write(frames[:at]...)
	switch f.Kind {
	case Inside:
		write(s.api.failure(f.Says, f.Message))
	case Half:
		write(frames[at][:len(frames[at])/2])
	case Reset:
		reset(w)
	case Silence:
		write("") // sends the header
		<-r.Context().Done()
	case Beat:
		forever(r, 10*time.Millisecond, func(i int) { write(s.api.beats[i%len(s.api.beats)]) })
	case Loris:
		forever(r, time.Millisecond, func(i int) { write(frames[at][i%8 : i%8+1]) })
	case Garbage:
		write("\x00\xff{{{\n", "data: \xf0\x9f{\"\n\n", "data: [1,2\n\n")
	}
}

// forever calls step with 0, 1, 2 and so on, with a pause after each call, until the client disconnects. The
// pause is real time, or that of the test's fake clock.
func forever(r *http.Request, pause time.Duration, step func(i int)) {
	for i := 0; r.Context().Err() == nil; i++ {
		step(i)
		select {
		case <-r.Context().Done():
		case <-time.After(pause):
		}
	}
}

// reset closes a connection so that the client sees a reset rather than an end. With a linger time of 0,
// closing sends RST. A connection of a [Pipe] has no such option, so its client sees a closed pipe.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// quote returns s as a JSON string, including the quotation marks.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string can always be encoded
	}
	return string(b)
}
