//go:build e2e

package harness

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Reply is one reply of the model: its reasoning, text and tool calls, in this order.
type Reply struct {
	Reasoning   []string
	Words       []string
	Calls       []Call
	Pause       time.Duration // between words
	Disconnects int           // how often the connection breaks after the words, before the reply is complete
	Status      int           // if not 0, the HTTP status of an error that is sent instead of the reply
}

// Call is a tool call with its arguments as JSON.
type Call struct{ Name, Args string }

// NewCall returns a call with arguments.
func NewCall(name string, args map[string]any) Call {
	b, err := json.Marshal(args)
	if err != nil {
		panic(err) // the arguments are constants of a test
	}
	return Call{name, string(b)}
}

// Words splits a text into the pieces in which a model streams it.
func Words(text string) []string { return strings.SplitAfter(text, " ") }

// gateMark is an entry of Words or Reasoning that isn't streamed: the reply waits there until the gate is open.
const gateMark = "\x00"

// GatedWords returns a text that the model streams up to the end of first, and continues once its gate is open.
func GatedWords(first, rest string) []string {
	return append(append(Words(first), gateMark), Words(rest)...)
}

// Model is a model API (Chat Completions) that plays scripts. The last word SCRIPT-NAME in the user's messages selects the
// script, and the number of tool results since then selects the reply.
type Model struct {
	URL     string
	scripts map[string][]Reply

	mu     sync.Mutex
	images [][]byte // received with messages
	// calls numbers the tool calls, whose ids must not repeat within a conversation.
	calls       int
	disconnects map[string]int // so far, by script
	streamed    []*StreamedReply
	gate        chan struct{} // closed while the gate is open
	waiting     int           // replies that wait at the gate
}

type chatMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// NewModel serves a model on loopback until the test ends. Its gate is open.
func NewModel(t *testing.T, scripts map[string][]Reply) *Model {
	m := &Model{scripts: scripts, disconnects: map[string]int{}, gate: make(chan struct{})}
	close(m.gate)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"object":"list","data":[{"id":"scripted","object":"model","created":1,"owned_by":"test"}]}`)
	})
	mux.HandleFunc("POST /v1/chat/completions", m.complete)
	s := httptest.NewServer(mux)
	t.Cleanup(func() { m.OpenGate(); s.Close() })
	m.URL = s.URL
	return m
}

// CloseGate closes the gate.
func (m *Model) CloseGate() {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.gate:
		m.gate = make(chan struct{})
	default:
	}
}

// WaitAtGate waits until a reply waits at the gate.
func (m *Model) WaitAtGate(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(StartLimit); ; time.Sleep(10 * time.Millisecond) { // the request comes from another process, so there is no event to wait for
		m.mu.Lock()
		waiting := m.waiting
		m.mu.Unlock()
		if waiting > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("no request reached the model's gate")
		}
	}
}

// OpenGate opens the gate, so that the replies that wait there continue.
func (m *Model) OpenGate() {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.gate:
	default:
		close(m.gate)
	}
}

// Images returns the images that the model has received.
func (m *Model) Images() [][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.images)
}

func (m *Model) complete(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Messages []chatMessage `json:"messages"`
		Stream   bool          `json:"stream"`
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	script, s := m.nextReply(q.Messages)
	if s.Status != 0 {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(s.Status)
		fmt.Fprint(w, `{"error":{"message":"the scripted model refuses","type":"invalid_request_error"}}`)
		return
	}
	if !q.Stream {
		m.completeAtOnce(w, r, s)
		return
	}
	g := m.beginReply()
	w.Header().Set("Content-Type", "text/event-stream")
	chunk := func(delta map[string]any, finish any) bool {
		return writeChunk(w, map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}}) && sleep(r.Context(), s.Pause)
	}
	for _, thought := range s.Reasoning {
		if thought == gateMark {
			if !m.passGate(r.Context()) {
				return
			}
			continue
		}
		if !chunk(map[string]any{"reasoning_content": thought}, nil) {
			return
		}
	}
	for _, word := range s.Words {
		if word == gateMark {
			if !m.passGate(r.Context()) {
				return
			}
			continue
		}
		m.locked(func() { g.Text += word })
		if !chunk(map[string]any{"content": word}, nil) {
			return
		}
	}
	if m.shouldDisconnect(script, s) {
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = c.(*net.TCPConn).SetLinger(0) // send RST; on an error the connection ends with FIN, which the client reports as broken too
			_ = c.Close()
		}
		return
	}
	finish := "stop"
	for i, c := range s.Calls {
		finish = "tool_calls"
		m.locked(func() { g.Commands = append(g.Commands, c.command()) })
		call := map[string]any{"index": i, "id": m.callID(), "type": "function", "function": map[string]any{"name": c.Name, "arguments": c.Args}}
		if !chunk(map[string]any{"tool_calls": []any{call}}, nil) {
			return
		}
	}
	chunk(map[string]any{}, finish)
	writeChunk(w, map[string]any{"choices": []any{}, "usage": map[string]int{"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}})
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// completeAtOnce sends the reply in one piece, for a request that doesn't ask for a stream.
func (m *Model) completeAtOnce(w http.ResponseWriter, r *http.Request, s Reply) {
	message := map[string]any{"role": "assistant"}
	if slices.Contains(s.Words, gateMark) && !m.passGate(r.Context()) {
		return
	}
	message["content"] = strings.ReplaceAll(strings.Join(s.Words, ""), gateMark, "")
	var calls []any
	for _, c := range s.Calls {
		calls = append(calls, map[string]any{"id": m.callID(), "type": "function", "function": map[string]any{"name": c.Name, "arguments": c.Args}})
	}
	finish := "stop"
	if calls != nil {
		message["tool_calls"], finish = calls, "tool_calls"
	}
	w.Header().Set("Content-Type", "application/json")
	answer := map[string]any{
		"id": "c", "object": "chat.completion", "created": 1, "model": "scripted",
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish}},
		"usage":   map[string]int{"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150},
	}
	_ = json.NewEncoder(w).Encode(answer) // fails only if the client has disconnected
}

// writeChunk sends a chunk of a stream. It returns false if the client has disconnected.
func writeChunk(w http.ResponseWriter, chunk map[string]any) bool {
	chunk["id"], chunk["object"], chunk["created"], chunk["model"] = "c", "chat.completion.chunk", 1, "scripted"
	b, err := json.Marshal(chunk)
	if err == nil {
		_, err = fmt.Fprintf(w, "data: %s\n\n", b)
	}
	w.(http.Flusher).Flush()
	return err == nil
}

// sleep waits for a pause. It returns false if ctx ends before.
func sleep(ctx context.Context, pause time.Duration) bool {
	select {
	case <-time.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}

// passGate waits at the gate. It returns false if the client disconnects.
func (m *Model) passGate(ctx context.Context) bool {
	m.mu.Lock()
	open := m.gate
	m.waiting++
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.waiting--
		m.mu.Unlock()
	}()
	select {
	case <-open:
		return true
	case <-ctx.Done():
		return false
	}
}

// beginReply registers a reply that is about to be streamed.
func (m *Model) beginReply() *StreamedReply {
	g := &StreamedReply{}
	m.locked(func() { m.streamed = append(m.streamed, g) })
	return g
}

// locked calls f with the lock held.
func (m *Model) locked(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

// TakeStreamed returns the replies that were streamed since its last call.
func (m *Model) TakeStreamed() (all []StreamedReply) {
	m.locked(func() {
		for _, g := range m.streamed {
			all = append(all, *g)
		}
		m.streamed = nil
	})
	return all
}

// shouldDisconnect counts a reply of a script and reports whether its connection has to break.
func (m *Model) shouldDisconnect(script string, s Reply) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.disconnects[script]++
	return m.disconnects[script] <= s.Disconnects
}

func (m *Model) callID() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	return fmt.Sprintf("call_%d", m.calls)
}

// nextReply returns the name of the script that the messages select, and its reply.
func (m *Model) nextReply(messages []chatMessage) (string, Reply) {
	script, results := "", 0
	for _, msg := range messages {
		switch msg.Role {
		case "user":
			if at := strings.LastIndex(string(msg.Content), "SCRIPT-"); at >= 0 {
				rest := string(msg.Content[at+len("SCRIPT-"):])
				script, results = rest[:strings.IndexFunc(rest+"\"", func(r rune) bool { return r < 'A' || r > 'Z' })], 0
				m.saveImages(msg.Content)
			}
		case "tool":
			results++
		}
	}
	answers := m.scripts[script]
	step := 0
	for ; step < len(answers)-1 && results >= len(answers[step].Calls) && len(answers[step].Calls) > 0; step++ {
		results -= len(answers[step].Calls)
	}
	if len(answers) == 0 {
		return script, Reply{Words: []string{"I have no script for this."}}
	}
	return script, answers[step]
}

// saveImages stores the images of a message's content.
func (m *Model) saveImages(content json.RawMessage) {
	var parts []struct {
		Image struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return
	}
	for _, p := range parts {
		if _, data, ok := strings.Cut(p.Image.URL, ";base64,"); ok {
			if b, err := base64.StdEncoding.DecodeString(data); err == nil {
				m.mu.Lock()
				m.images = append(m.images, b)
				m.mu.Unlock()
			}
		}
	}
}
