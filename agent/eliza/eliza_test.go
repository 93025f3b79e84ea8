package eliza_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/agent/eliza"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/elizachat"
	"github.com/leat-dev/leat/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var input = agent.Input{
	Conversation: "c1", Turn: "turn", Key: "key", Principal: agent.Principal{Tenant: "t", Subject: "alice"},
	Message: agent.Message{ID: "m", Role: event.User, Text: "hello"},
}

func newAgent(t *testing.T, url, options string) *eliza.Agent {
	t.Helper()
	s, err := agent.ParseSpec("eliza:" + url + options)
	if err != nil {
		t.Fatal(err)
	}
	a, err := agent.Kinds{eliza.Kind(dialect.NewRegistry(elizachat.Dialect()))}.Make(s)
	if err != nil {
		t.Fatal(err)
	}
	own := a.(*eliza.Agent)
	t.Cleanup(own.Close)
	return own
}

// server is a strict Eliza server: it stores conversations and refuses invalid requests as the real one does.
type server struct {
	mu      sync.Mutex
	rooms   []string // ids of the existing conversations; the room of a conversation is "room-" and its id
	made    int
	texts   []string // received messages, as "conversation: text"
	aborted []string // rooms
}

// read decodes a body and refuses unknown keys.
func read(w http.ResponseWriter, r *http.Request, v any) bool {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		http.Error(w, `{"error":"unknown key"}`, http.StatusBadRequest)
		return false
	}
	return true
}

// accept handles every request but the chat's stream, and reports whether the request is one for that stream.
func (s *server) accept(t *testing.T, w http.ResponseWriter, r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.Header.Get("Authorization") != "Bearer tok" {
		http.Error(w, `{"error":"Unauthorized"}`, http.StatusUnauthorized)
		return false
	}
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/"), "/")
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/api/status":
		fmt.Fprint(w, `{"state":"running","agentName":"Ada"}`)
	case r.Method == http.MethodPost && r.URL.Path == "/api/conversations":
		var body struct {
			Title string `json:"title"`
		}
		if !read(w, r, &body) {
			return false
		}
		s.made++
		id := fmt.Sprintf("e%d", s.made)
		s.rooms = append(s.rooms, id)
		if body.Title != "Leat c1" {
			t.Errorf("title %q", body.Title)
		}
		fmt.Fprintf(w, `{"conversation":{"id":%q,"title":%q,"roomId":"room-%s"}}`, id, body.Title, id)
	case r.Method == http.MethodPost && len(path) == 3 && path[0] == "turns" && path[2] == "abort":
		s.aborted = append(s.aborted, path[1])
		fmt.Fprint(w, `{"ok":true}`)
	case r.Method == http.MethodPost && len(path) == 4 && path[0] == "conversations" && path[3] == "stream":
		if !slices.Contains(s.rooms, path[1]) {
			http.Error(w, `{"error":"Conversation not found"}`, http.StatusNotFound)
			return false
		}
		var body struct {
			Text, ChannelType, ClientMessageID, StreamProtocol string
			Images                                             []struct{ Data, MimeType, Name string }
		}
		if !read(w, r, &body) {
			return false
		}
		if body.Text == "" || body.ChannelType != "DM" || body.ClientMessageID != "key" {
			t.Errorf("unexpected message %+v", body)
		}
		text := path[1] + ": " + body.Text
		for _, i := range body.Images {
			text += " " + i.Name + " " + i.MimeType + " " + i.Data
		}
		s.texts = append(s.texts, text)
		return true
	default:
		http.NotFound(w, r)
	}
	return false
}

const (
	token = "data: {\"type\":\"token\",\"text\":\"Hé\"}\n\n"
	good  = token + done
	done  = "data: {\"type\":\"done\",\"fullText\":\"Hé\",\"agentName\":\"Ada\"}\n\n"
)

func (s *server) serve(t *testing.T) string {
	t.Helper()
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.accept(t, w, r) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, ": heartbeat\n\n"+good)
		}
	}))
	t.Cleanup(h.Close)
	return h.URL
}

func TestFaults(t *testing.T) {
	t.Setenv("ELIZA_TEST_TOKEN", "tok")
	s := &server{}
	agenttest.Faults(t, agenttest.Upstream{
		New:     func(t *testing.T, url string) agent.Agent { return newAgent(t, url, "?token_env=ELIZA_TEST_TOKEN") },
		Accept:  s.accept,
		Frames:  []string{token, done},
		Visible: "Hé",
	}, input)
}

// A counterpart is created once, and again after the server has deleted it.
func TestConversations(t *testing.T) {
	t.Setenv("ELIZA_TEST_TOKEN", "tok")
	s := &server{}
	a := newAgent(t, s.serve(t), "?token_env=ELIZA_TEST_TOKEN")
	var kept json.RawMessage
	turn := func(in agent.Input) {
		t.Helper()
		stage := agenttest.NewStage(t.Context())
		stage.Session = kept
		if err := stage.Run(a, in); err != nil || stage.Visible() != "Hé" {
			t.Errorf("%v, readers see %q", err, stage.Visible())
		}
		kept = stage.Session
	}
	turn(input)
	withImage := input
	withImage.Message.Parts = []event.Part{{Kind: event.KindMedia, Media: &event.Media{URL: "data:image/png;base64,aGk=", MIME: "image/png", Name: "a.png"}}}
	turn(withImage)
	s.mu.Lock()
	s.rooms = nil // the conversation is deleted on the server
	s.mu.Unlock()
	turn(input)
	if diff := cmp.Diff([]string{"e1: hello", "e1: hello a.png image/png aGk=", "e2: hello"}, s.texts); diff != "" {
		t.Error(diff)
	}
	in := input
	in.Session = kept
	if err := a.Stop(t.Context(), in); err != nil || !slices.Equal(s.aborted, []string{"room-e2"}) {
		t.Errorf("stop: %v, %q", err, s.aborted)
	}
	if err := a.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// A server that answers every message with 404 gets two messages, not an endless loop.
func TestConversationAlwaysGone(t *testing.T) {
	calls := 0
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls++; r.URL.Path == "/api/conversations" {
			fmt.Fprint(w, `{"conversation":{"id":"e"}}`)
			return
		}
		http.Error(w, "not found", http.StatusNotFound)
	}))
	defer h.Close()
	stage := agenttest.NewStage(t.Context())
	stage.Session = json.RawMessage(`{"conversation":"old"}`)
	if err := stage.Run(newAgent(t, h.URL, ""), input); err == nil || !strings.Contains(err.Error(), "404") || calls != 3 {
		t.Errorf("%v after %d calls", err, calls)
	}
}

// Events of the socket are reported with their conversation. After a disconnect, the socket resumes after the last
// event.
func TestSignals(t *testing.T) {
	t.Setenv("ELIZA_TEST_TOKEN", "tok")
	s := &server{}
	cursors := make(chan string, 8)
	next := make(chan []string)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/ws" {
			if s.accept(t, w, r) {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, good)
			}
			return
		}
		if r.Header.Get("Authorization") != "Bearer tok" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.CloseNow()
		cursors <- r.URL.Query().Get("lastEventId")
		for _, m := range append([]string{`{"type":"status","state":"running"}`, `garbage`}, <-next...) {
			if err := c.Write(context.Background(), websocket.MessageText, []byte(m)); err != nil {
				return
			}
		}
		_ = c.Close(websocket.StatusGoingAway, "")
	}))
	defer h.Close()
	a := newAgent(t, h.URL, "?token_env=ELIZA_TEST_TOKEN")
	if err := agenttest.NewStage(t.Context()).Run(a, input); err != nil {
		t.Fatal(err)
	}
	told := make(chan agent.Signal, 8)
	a.Signals(func(x agent.Signal) { told <- x })
	a.Start(slog.New(slog.DiscardHandler))
	<-cursors
	next <- []string{
		`{"type":"agent_event","eventId":"evt-7","runId":"r","seq":3,"stream":"tool","roomId":"room-e1","payload":{"a":1}}`,
		`{"type":"agent_event","eventId":"evt-7","payload":{}}`,
		`{"type":"heartbeat_event","eventId":"evt-8","roomId":"another","payload":{}}`,
	}
	three := int64(3)
	want := []agent.Signal{
		{Type: "agent_event", Stream: "tool", RunID: "r", Seq: &three, Conversation: "c1", Payload: json.RawMessage(`{"a":1}`)},
		{Type: "heartbeat_event", Payload: json.RawMessage(`{}`)},
	}
	if diff := cmp.Diff(want, []agent.Signal{<-told, <-told}); diff != "" {
		t.Error(diff)
	}
	if at := <-cursors; at != "evt-8" {
		t.Errorf("resumed after event %q", at)
	}
	next <- nil
}
