package llmtest

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"time"
)

// Fault is how a call fails.
type Fault struct {
	Kind FaultKind
	// After is how many pieces are told before it happens.
	After int

	// Of Status: the status, and what the provider says. Says and Message are of Inside too.
	Status        int
	Says, Message string
	Header        http.Header
}

// FaultKind is what goes wrong.
type FaultKind int

// The kinds of faults.
const (
	noFault  FaultKind = iota
	Status             // another status than 200
	Inside             // an error inside the stream
	Close              // the body ends without its end
	Half               // it ends in the middle of a frame
	Reset              // the connection is reset
	Silence            // nothing more is told, and the connection stays
	Beat               // the connection is kept open by what is no progress
	Loris              // a frame comes byte by byte and never ends
	Garbage            // what comes is no frame
	Twice              // the end is told twice
	AfterEnd           // pieces come after the end
)

// stream tells an answer, with its fault.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, raw []byte, f Fault) {
	s.mu.Lock()
	pieces := s.pieces
	s.mu.Unlock()
	w.Header().Set("Content-Type", s.api.media)
	frames, end := s.api.frames(pieces)
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
	// The first piece is the one before which len(frames)-end-len(pieces) others stand.
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
		at = 0 // not even what comes before the first piece
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
		write("") // the head
		<-r.Context().Done()
	case Beat:
		for i := 0; ; i++ {
			write(s.api.beats[i%len(s.api.beats)])
			select {
			case <-r.Context().Done():
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	case Loris:
		for i := 0; ; i++ {
			write(frames[at][i%8 : i%8+1])
			select {
			case <-r.Context().Done():
				return
			case <-time.After(time.Millisecond):
			}
		}
	case Garbage:
		write("\x00\xff{{{\n", "data: \xf0\x9f{\"\n\n", "data: [1,2\n\n")
	}
}

// reset ends a connection without a goodbye.
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

// quote is a string as JSON.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always is
	}
	return string(b)
}
