package agentsdk_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agentsdk"
	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/dialect"
	sdk "github.com/leat-dev/leat/dialect/agentsdk"
	"github.com/leat-dev/leat/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var input = agent.Input{Conversation: "c1", Turn: "turn", Key: "key", Message: agent.Message{ID: "m", Role: event.User, Text: "hello"}}

func newAgent(t *testing.T, url, options string) *agentsdk.Agent {
	t.Helper()
	s, err := agent.ParseSpec("agentsdk:" + url + options)
	if err != nil {
		t.Fatal(err)
	}
	a, err := agent.Kinds{agentsdk.Kind(dialect.NewRegistry(sdk.Dialect()))}.Make(s)
	if err != nil {
		t.Fatal(err)
	}
	own := a.(*agentsdk.Agent)
	t.Cleanup(own.Close)
	return own
}

// accept rejects the requests that the runtime's server rejects.
func accept(t *testing.T, w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path != "/v1/run/stream" || r.Method != http.MethodPost {
		http.Error(w, `{"error":"no such route"}`, http.StatusNotFound)
		return false
	}
	var body struct {
		Prompt  string `json:"prompt"`
		Session string `json:"session_id"`
		Timeout int    `json:"timeout_ms"`
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20))
	d.DisallowUnknownFields()
	if err := d.Decode(&body); err != nil || body.Prompt == "" {
		t.Errorf("body: %v, %+v", err, body)
		http.Error(w, `{"error":"prompt is required"}`, http.StatusBadRequest)
		return false
	}
	if body.Prompt != "hello" || body.Session != "leat-c1" {
		t.Errorf("the runtime got %+v", body)
	}
	return true
}

func TestFaults(t *testing.T) {
	agenttest.Faults(t, agenttest.Upstream{
		KeepAlive: []string{"data: {\"type\":\"ping\"}\n\n", "data: {\"type\":\"x-beat\"}\n\n"},
		New:       func(t *testing.T, url string) agent.Agent { return newAgent(t, url, "") },
		Accept:    accept,
		Frames: []string{
			"data: {\"type\":\"ping\"}\n\n",
			"data: {\"type\":\"agent_start\"}\n\n",
			"data: {\"type\":\"iteration_start\",\"iteration\":0}\n\n",
			"data: {\"type\":\"message_start\",\"message\":{\"role\":\"assistant\"}}\n\n",
			"data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\"}}\n\n",
			"data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"H\"}}\n\n",
			"data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"é\"}}\n\n",
			"data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
			"data: {\"type\":\"agent_stop\"}\n\n",
		},
		Visible: "Hé",
	}, input)
}

// A session runs one turn at a time.
func TestSessions(t *testing.T) {
	first, second := make(chan struct{}), make(chan struct{})
	var running, most, calls atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		most.Store(max(most.Load(), running.Add(1)))
		if calls.Add(1) == 1 {
			close(first)
			<-second
		}
		running.Add(-1)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("data: {\"type\":\"agent_stop\"}\n\n"))
	}))
	defer s.Close()
	a := newAgent(t, s.URL, "?session={subject}")
	done := make(chan error, 2)
	go func() { done <- agenttest.NewStage(t.Context()).Run(a, input) }()
	<-first
	waits := agenttest.NewStage(t.Context())
	go func() { done <- waits.Run(a, input) }()
	for waits.Turn().Phase != "waiting" {
		runtime.Gosched()
	}
	close(second)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if most.Load() != 1 || calls.Load() != 2 {
		t.Errorf("%d turns ran in one session at a time, of %d", most.Load(), calls.Load())
	}
}

func TestSpecs(t *testing.T) {
	for _, spec := range []string{"agentsdk:ftp://x", "agentsdk:http://x/?session={you}", "agentsdk:http://x/?token_env=LEAT_TEST_NO_SUCH_VARIABLE", "agentsdk:http://u:p@x/"} {
		s, err := agent.ParseSpec(spec)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (agent.Kinds{agentsdk.Kind(dialect.NewRegistry(sdk.Dialect()))}).Make(s); err == nil {
			t.Errorf("%s is taken", spec)
		}
	}
}

func TestCheck(t *testing.T) {
	status := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/health" || r.Header.Get("Authorization") != "Bearer tok" {
			t.Errorf("%s %v", r.URL, r.Header)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"status":"ok"}`))
	}))
	defer s.Close()
	t.Setenv("SDK_TOKEN", "tok")
	a := newAgent(t, s.URL, "?token_env=SDK_TOKEN")
	if err := a.Check(t.Context()); err != nil {
		t.Error(err)
	}
	status = http.StatusUnauthorized
	if err := a.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("the check of a token that is refused says %v", err)
	}
}
