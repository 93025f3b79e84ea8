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

// Say is one answer of the model: what it thinks, says and calls.
type Reply struct {
	Reasoning   []string
	Words       []string
	Calls       []Call
	Pause       time.Duration // between words
	Disconnects int           // so many times the connection breaks after the words
	Status      int           // in place of an answer
}

// Call is a tool that is called, with its arguments as JSON.
type Call struct{ Name, Args string }

// NewCall is a call with arguments.
func NewCall(name string, args map[string]any) Call {
	b, err := json.Marshal(args)
	if err != nil {
		panic(err) // a test's own constants
	}
	return Call{name, string(b)}
}

// Words cuts a text as a model streams it.
func Words(text string) []string { return strings.SplitAfter(text, " ") }

// hold is a word that the model does not say: it waits there while its gate is closed.
const gateMark = "\x00"

// Held is a text that the model says a part of, and the rest once its gate is open.
func GatedWords(first, rest string) []string {
	return append(append(Words(first), gateMark), Words(rest)...)
}

// Model is a scripted one, that speaks Chat Completions. The last word SCRIPT-… in the user's messages says which script it plays;
// a script's next answer is told by how many results of tools there are since.
type Model struct {
	URL     string
	scripts map[string][]Reply

	mu          sync.Mutex
	images      [][]byte // the pictures that came with messages
	calls       int
	disconnects map[string]int
	streamed    []*StreamedReply
	gate        chan struct{} // closed while the gate is open
	waiting     int           // answers that wait at the gate
}

type chatMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// NewModel serves a model on loopback. Its gate is open.
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

// Close closes the gate.
func (m *Model) CloseGate() {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.gate:
		m.gate = make(chan struct{})
	default:
	}
}

// Asked waits until an answer waits at the gate.
func (m *Model) WaitAtGate(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(StartLimit); ; time.Sleep(10 * time.Millisecond) { // what asks is another process
		m.mu.Lock()
		held := m.waiting
		m.mu.Unlock()
		if held > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the model was not asked")
		}
	}
}

// Open opens the gate: what waits there goes on.
func (m *Model) OpenGate() {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.gate:
	default:
		close(m.gate)
	}
}

// Images are the pictures that the model got.
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
			_ = c.(*net.TCPConn).SetLinger(0) // what it costs is a slower end
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

// whole answers in one piece, once its gate is open.
func (m *Model) completeAtOnce(w http.ResponseWriter, r *http.Request, s Reply) {
	said := map[string]any{"role": "assistant"}
	if slices.Contains(s.Words, gateMark) && !m.passGate(r.Context()) {
		return
	}
	said["content"] = strings.ReplaceAll(strings.Join(s.Words, ""), gateMark, "")
	var calls []any
	for _, c := range s.Calls {
		calls = append(calls, map[string]any{"id": m.callID(), "type": "function", "function": map[string]any{"name": c.Name, "arguments": c.Args}})
	}
	finish := "stop"
	if calls != nil {
		said["tool_calls"], finish = calls, "tool_calls"
	}
	w.Header().Set("Content-Type", "application/json")
	answer := map[string]any{
		"id": "c", "object": "chat.completion", "created": 1, "model": "scripted",
		"choices": []any{map[string]any{"index": 0, "message": said, "finish_reason": finish}},
		"usage":   map[string]int{"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150},
	}
	_ = json.NewEncoder(w).Encode(answer) // it fails if the client has left
}

func writeChunk(w http.ResponseWriter, chunk map[string]any) bool {
	chunk["id"], chunk["object"], chunk["created"], chunk["model"] = "c", "chat.completion.chunk", 1, "scripted"
	b, err := json.Marshal(chunk)
	if err == nil {
		_, err = fmt.Fprintf(w, "data: %s\n\n", b)
	}
	w.(http.Flusher).Flush()
	return err == nil
}

func sleep(ctx context.Context, pause time.Duration) bool {
	select {
	case <-time.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}

// pass waits at the gate. It reports false where nobody waits for the answer any more.
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

// give begins an answer.
func (m *Model) beginReply() *StreamedReply {
	g := &StreamedReply{}
	m.locked(func() { m.streamed = append(m.streamed, g) })
	return g
}

// note calls f with the lock.
func (m *Model) locked(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

// Given returns the answers that were streamed since it was called last.
func (m *Model) TakeStreamed() (all []StreamedReply) {
	m.locked(func() {
		for _, g := range m.streamed {
			all = append(all, *g)
		}
		m.streamed = nil
	})
	return all
}

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

// next is the answer that the messages ask for.
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

// keep keeps the pictures of a message.
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
