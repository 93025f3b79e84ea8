package voicetest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

// idleLimit is after how long without a frame the fake of Deepgram's socket ends the connection, as the real one does.
const idleLimit = 10 * time.Second

// listener is one connection of the fake of Deepgram's live socket.
type listener struct {
	ws *websocket.Conn
	// samples counts those since the last final text.
	samples int
	// received is the length of all audio, in bytes.
	received int
}

// listen answers GET /v1/listen. It sends an interim text for each audio frame. A frame of silence after speech, or a Finalize, makes the
// text final. Texts are those of Transcript.
func (s *Server) listen(w http.ResponseWriter, r *http.Request, f Fault) {
	q := r.URL.Query()
	parameters := map[string]bool{
		"model": true, "language": true, "encoding": true, "sample_rate": true, "channels": true, "punctuate": true,
		"interim_results": true, "endpointing": true,
	}
	for name := range q {
		if !parameters[name] {
			s.wrong(w, "deepgram", "unknown parameter %q", name)
			return
		}
	}
	if q.Get("model") == "" || q.Get("encoding") != "linear16" || q.Get("sample_rate") != "16000" || q.Get("channels") != "1" {
		s.wrong(w, "deepgram", "query is %q", r.URL.RawQuery)
		return
	}
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		s.t.Errorf("voicetest: deepgram: %v", err)
		return
	}
	defer ws.CloseNow()
	s.record(Request{Service: "deepgram", Model: q.Get("model"), Language: q.Get("language")})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-s.testDone:
			cancel()
		case <-ctx.Done():
		}
	}()
	l := &listener{ws: ws}
	for {
		if f.Message != "" && l.received >= f.After {
			_ = ws.Write(ctx, websocket.MessageText, []byte(f.Message)) // the client may have gone
			f.Message = ""
		}
		if f.CloseReason != "" && l.received >= f.After {
			_ = ws.Close(websocket.StatusInternalError, f.CloseReason)
			return
		}
		if (f.Stall || f.Reset) && l.received >= f.After {
			if f.Stall {
				<-ctx.Done()
			}
			return
		}
		if !s.frame(ctx, l) {
			return
		}
	}
}

// frame handles one frame. It returns false at the end of the connection.
func (s *Server) frame(ctx context.Context, l *listener) bool {
	readCtx, cancel := context.WithTimeout(ctx, idleLimit)
	defer cancel()
	kind, data, err := l.ws.Read(readCtx)
	if err != nil {
		if readCtx.Err() != nil && ctx.Err() == nil {
			s.t.Error("voicetest: deepgram: neither audio nor KeepAlive within 10 s")
		}
		return false
	}
	if kind == websocket.MessageBinary {
		return s.audio(ctx, l, data)
	}
	var message struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(data, &message); err != nil {
		s.t.Errorf("voicetest: deepgram: message %q", data)
		return false
	}
	s.record(Request{Service: "deepgram", Text: message.Type})
	switch message.Type {
	case "KeepAlive":
		return true
	case "Finalize":
		if l.samples == 0 { // the real service sends nothing either
			return true
		}
		return l.send(ctx, true, false, true)
	case "CloseStream":
		ok := l.samples == 0 || l.send(ctx, true, false, false)
		if ok && l.write(ctx, map[string]any{"type": "Metadata", "request_id": "1", "duration": float64(l.received) / 32_000, "channels": 1}) {
			_ = l.ws.Close(websocket.StatusNormalClosure, "")
		}
		return false
	}
	s.t.Errorf("voicetest: deepgram: unknown message %q", data)
	return false
}

// audio handles a frame of audio.
func (s *Server) audio(ctx context.Context, l *listener, data []byte) bool {
	if len(data) == 0 || len(data)%2 != 0 {
		s.t.Errorf("voicetest: deepgram: an audio frame of %d bytes", len(data))
		return false
	}
	l.received += len(data)
	if isSilence := len(bytes.Trim(data, "\x00")) == 0; isSilence {
		return l.samples == 0 || l.send(ctx, true, true, false)
	}
	l.samples += len(data) / 2
	return l.send(ctx, false, false, false)
}

// send sends the text so far.
func (l *listener) send(ctx context.Context, isFinal, isSpeechFinal, isFromFinalize bool) bool {
	ok := l.write(ctx, map[string]any{
		"type": "Results", "channel_index": []int{0, 1}, "duration": 1.0, "start": 0.0,
		"is_final": isFinal, "speech_final": isSpeechFinal, "from_finalize": isFromFinalize,
		"channel":  map[string]any{"alternatives": []any{map[string]any{"transcript": Transcript(l.samples), "confidence": 0.9, "words": []any{}}}},
		"metadata": map[string]any{"request_id": "1"},
	})
	if isFinal {
		l.samples = 0
	}
	return ok
}

// write writes a message. It returns false if the connection has ended.
func (l *listener) write(ctx context.Context, message any) bool {
	b, err := json.Marshal(message)
	if err != nil {
		panic(err) // can't happen: the messages are built above
	}
	return l.ws.Write(ctx, websocket.MessageText, b) == nil
}
