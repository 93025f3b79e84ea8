package voicetest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leat-dev/leat/internal/voice"
	"github.com/leat-dev/leat/internal/voice/pcm"
)

// Key is the API key that the server accepts. No error of an engine may contain it.
const Key = "sk-voicetest-7f3a9c51d2"

// Server has the APIs of all services at one address. The base URL of OpenAI is that of the server with /v1.
type Server struct {
	URL string

	t testing.TB
	// testDone is closed at the end of the test, so that no handler stays.
	testDone chan struct{}

	mu       sync.Mutex
	fault    Fault
	requests []Request
	// open counts the requests that are being answered.
	open int
	// changed is closed and replaced if requests or open have changed.
	changed chan struct{}
}

// Request is a request that the server has accepted or refused with a fault.
type Request struct {
	// Service is the name of the engine in the options.
	Service string
	// The fields of the request, as far as the service has them. Text is the type of a message for messages on a socket.
	Text, Model, Voice, Language, Instructions string
	Speed                                      float64
	// Audio is the PCM of a transcription.
	Audio []byte
}

// Fault makes the server misbehave. With the zero value it works as documented.
type Fault struct {
	// Status refuses requests, with RetryAfter and Body. If Body is empty, the service's usual body is sent.
	Status           int
	RetryAfter, Body string
	// Delay passes before the header of the response, and Pause before each chunk.
	Delay, Pause time.Duration
	// Stall and Reset end the response after a number of bytes: Stall sends nothing more, and Reset resets the connection.
	Stall, Reset bool
	After        int
	// Chunk is the size of the chunks of the response. If it is 0, it is 4,096.
	Chunk int
	// Rate is the sample rate in Hz, which the content type names. If it is 0, it is that of the request.
	Rate int
	// WAV adds a header with false sizes, ExactWAV one with correct sizes and a title after the samples.
	WAV, ExactWAV bool
	// ContentType replaces that of the service.
	ContentType string
	// Extra is sent after the samples.
	Extra []byte
	// Audio replaces the samples, if it isn't nil.
	Audio []byte
	// Message is sent on a socket after a number of bytes of audio, and CloseReason ends it then, as Deepgram ends idle connections.
	Message, CloseReason string
	// NoLength sends neither a length nor chunks.
	NoLength bool
}

// NewServer starts a server on the loopback interface. It ends with the test.
func NewServer(t testing.TB) *Server {
	s := &Server{t: t, testDone: make(chan struct{}), changed: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/audio/speech", s.handle("openai", s.openAISpeech))
	mux.HandleFunc("POST /v1/text-to-speech/{voice}/stream", s.handle("elevenlabs", s.elevenLabs))
	mux.HandleFunc("POST /tts/bytes", s.handle("cartesia", s.cartesia))
	mux.HandleFunc("POST /v1/speak", s.handle("deepgram", s.deepgramSpeak))
	mux.HandleFunc("POST /v1/audio/transcriptions", s.handle("openai", s.transcriptions))
	mux.HandleFunc("GET /v1/listen", s.handle("deepgram", s.listen))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("voicetest: unknown address %s %s", r.Method, r.URL.Path)
		http.NotFound(w, r)
	})
	server := httptest.NewServer(mux)
	s.URL = server.URL
	t.Cleanup(func() {
		close(s.testDone)
		server.Close()
	})
	return s
}

// SetFault sets the fault of all later requests.
func (s *Server) SetFault(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Requests returns all requests so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// AwaitIdle waits until no request is being answered, or fails the test.
func (s *Server) AwaitIdle() {
	s.t.Helper()
	s.await("the end of all requests", func() bool { return s.open == 0 })
}

// AwaitRequest waits until a request matches, or fails the test.
func (s *Server) AwaitRequest(matches func(Request) bool) {
	s.t.Helper()
	s.await("a request", func() bool { return slices.ContainsFunc(s.requests, matches) })
}

// await waits for a condition, which is checked under the lock.
func (s *Server) await(event string, isMet func() bool) {
	s.t.Helper()
	timeout := time.After(10 * time.Second)
	for {
		s.mu.Lock()
		ok, changed := isMet(), s.changed
		s.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			s.t.Errorf("voicetest: timeout while waiting for %s", event)
			return
		}
	}
}

// notify wakes those that wait for a condition. The caller has the lock.
func (s *Server) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// add changes the number of open requests.
func (s *Server) add(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open += n
	s.notify()
}

// record stores a request.
func (s *Server) record(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	s.notify()
}

// handle counts a service's requests and applies the faults that come before its answer.
func (s *Server) handle(service string, serve func(http.ResponseWriter, *http.Request, Fault)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		fault := s.fault
		s.mu.Unlock()
		s.add(1)
		defer s.add(-1)
		body, err := io.ReadAll(r.Body) // the context of a request ends with its connection only after the body was read
		if err != nil {
			return // the client has gone
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		s.wait(r, fault.Delay)
		switch {
		case keyOf(service, r) != Key:
			refuse(w, service, http.StatusUnauthorized, Fault{})
		case fault.Status != 0:
			refuse(w, service, fault.Status, fault)
		default:
			serve(w, r, fault)
		}
	}
}

// wait waits for d, or until the request or the test ends.
func (s *Server) wait(r *http.Request, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	case <-s.testDone:
	}
}

// keyOf returns the API key from the header in which the service takes it.
func keyOf(service string, r *http.Request) string {
	header, prefix := "Authorization", "Bearer "
	switch service {
	case "elevenlabs":
		header, prefix = "xi-api-key", ""
	case "deepgram":
		prefix = "Token "
	}
	key, ok := strings.CutPrefix(r.Header.Get(header), prefix)
	if !ok {
		return ""
	}
	return key
}

// wrong fails the test and answers a request that no service accepts.
func (s *Server) wrong(w http.ResponseWriter, service, format string, args ...any) {
	problem := fmt.Sprintf(format, args...)
	s.t.Errorf("voicetest: %s: %s", service, problem)
	refuse(w, service, http.StatusBadRequest, Fault{})
}

// refuse sends an error as the service does.
func refuse(w http.ResponseWriter, service string, status int, f Fault) {
	if f.RetryAfter != "" {
		w.Header().Set("Retry-After", f.RetryAfter)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	text := http.StatusText(status)
	var body any
	switch service {
	case "openai":
		body = map[string]any{"error": map[string]any{"message": text + " for " + Key, "type": "invalid_request_error", "param": nil, "code": "some_code"}}
	case "elevenlabs":
		body = map[string]any{"detail": map[string]any{"status": "some_status", "message": text + " for " + Key}}
	case "cartesia":
		body = map[string]any{"error_code": "some_code", "title": text, "message": text + " for " + Key, "request_id": "1"}
	default:
		body = map[string]any{"err_code": "SOME_CODE", "err_msg": text + " for " + Key, "request_id": "1"}
	}
	b, err := json.Marshal(body)
	if err != nil {
		panic(err) // can't happen: the body consists of texts
	}
	_, _ = io.WriteString(w, cmp.Or(f.Body, string(b)))
}

// speak sends the audio of a text with the faults.
func (s *Server) speak(w http.ResponseWriter, r *http.Request, f Fault, contentType, text string) {
	rate := cmp.Or(f.Rate, voice.SpeechRate)
	audio := f.Audio
	if audio == nil {
		audio = Speech(text, rate)
	}
	if f.Rate != 0 {
		contentType = fmt.Sprintf("audio/pcm;rate=%d;channels=1", rate)
	}
	switch {
	case f.WAV: // the size of espeak-ng, which can't be true
		audio, contentType = append(pcm.AppendHeader(nil, rate, 0x7FFF_F000), audio...), "audio/wav"
	case f.ExactWAV:
		audio, contentType = append(append(pcm.AppendHeader(nil, rate, len(audio)), audio...), "LIST\x06\x00\x00\x00title!"...), "audio/wav"
	}
	audio = append(audio, f.Extra...)
	w.Header().Set("Content-Type", cmp.Or(f.ContentType, contentType))
	if f.NoLength {
		w.Header().Set("Transfer-Encoding", "identity")
	}
	w.WriteHeader(http.StatusOK)
	flusher := http.NewResponseController(w)
	ends := f.Stall || f.Reset
	for offset := 0; offset < len(audio); {
		n := min(cmp.Or(f.Chunk, 4_096), len(audio)-offset)
		if ends {
			n = min(n, f.After-offset)
		}
		s.wait(r, f.Pause)
		if _, err := w.Write(audio[offset : offset+n]); err != nil {
			return
		}
		_ = flusher.Flush()
		if offset += n; !ends || offset < f.After {
			continue
		}
		if f.Reset {
			panic(http.ErrAbortHandler)
		}
		s.wait(r, time.Hour)
		return
	}
}
