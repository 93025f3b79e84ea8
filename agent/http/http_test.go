package http_test

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agenttest"
	httpagent "github.com/leat-dev/leat/agent/http"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/anthropic"
	"github.com/leat-dev/leat/dialect/elizaactions"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/signature/signaturetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var dialects = dialect.NewRegistry(elizaactions.Dialect(), anthropic.Dialect())

var input = agent.Input{
	Conversation: "c", Turn: "turn", Key: "key",
	Principal: agent.Principal{Tenant: "t", Subject: "alice"},
	Message:   agent.Message{ID: "m2", Role: event.User, Text: "hello"},
	History:   []agent.Message{{ID: "m1", Role: event.Assistant, Text: "hi"}},
	Ingest:    &agent.Ingest{URL: "http://127.0.0.1/api/turns/turn/ingest", Token: "tok"},
}

// serve starts a server whose handler is the agent's program.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func newAgent(t *testing.T, url, options string) agent.Agent {
	t.Helper()
	s, err := agent.ParseSpec("http:" + url + options)
	if err != nil {
		t.Fatal(err)
	}
	a, err := agent.Kinds{httpagent.Kind(dialects)}.Make(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.(interface{ Close() }).Close)
	return a
}

// wantError checks the error that viewers see.
func wantError(t *testing.T, err error, code string, retryable bool, words ...string) {
	t.Helper()
	var shown *agent.Error
	if !errors.As(err, &shown) {
		t.Fatalf("got %v, want an error that readers see", err)
	}
	if shown.Code != code || shown.Retryable != retryable {
		t.Errorf("got %s, retryable %v, want %s, %v: %s", shown.Code, shown.Retryable, code, retryable, shown.Message)
	}
	for _, w := range words {
		if !strings.Contains(shown.Error(), w) {
			t.Errorf("%q does not say %q", shown, w)
		}
	}
}

func TestCallbacks(t *testing.T) {
	agenttest.Callbacks(t, func(t *testing.T, s agenttest.Script) agenttest.Playback {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			for _, line := range s.Actions(t) {
				// The stream is sent in two halves: its meaning must not depend on how it is split.
				for _, half := range [][]byte{line[:len(line)/2], line[len(line)/2:]} {
					if _, err := w.Write(half); err != nil {
						t.Error(err)
					}
					w.(http.Flusher).Flush()
				}
			}
		})
		return agenttest.Play(t, newAgent(t, url, ""), input)
	})
}

func TestRequest(t *testing.T) {
	var got agent.Input
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Error(err)
		}
		if err := signaturetest.Verify("s3cret", r.Header.Get("Leat-Signature"), body, time.Now(), 0); err != nil {
			t.Error(err)
		}
		if r.Method != http.MethodPost || r.URL.Path != "/chat" || r.Header.Get("Idempotency-Key") != "key" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
		}
		fmt.Fprintln(w, `{"type":"chunk","text":"hey"}`+"\n"+`{"type":"done"}`)
	})
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, option := range []string{"secret=s3cret", "secret_file=" + file} {
		stage := agenttest.NewStage(t.Context())
		if err := stage.Run(newAgent(t, url+"/chat", "?"+option), input); err != nil {
			t.Fatal(err)
		}
		wantTurn(t, stage, event.Completed, "hey")
		if got.Message.Text != "hello" || len(got.History) != 1 || got.Principal.Subject != "alice" || got.Ingest.Token != "tok" {
			t.Errorf("the agent got %+v", got)
		}
	}
}

func wantTurn(t *testing.T, s *agenttest.Stage, o event.Outcome, visible string) {
	t.Helper()
	if got := s.Turn().Outcome; got != o {
		t.Errorf("the turn is %s, want %s: %v", got, o, s.Turn().Error)
	}
	if got := s.Visible(); got != visible {
		t.Errorf("readers see %q, want %q", got, visible)
	}
}

// Server-sent events are decoded like lines of JSON.
func TestEvents(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range []string{
			`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"m"}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hey"}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}`,
			`{"type":"message_stop"}`,
		} {
			var v struct{ Type string }
			if err := json.Unmarshal([]byte(e), &v); err != nil {
				t.Error(err)
			}
			fmt.Fprintf(w, "event: %s\ndata: %s\n\n", v.Type, e)
		}
	})
	s := agenttest.NewStage(t.Context())
	if err := s.Run(newAgent(t, url, "?dialect=anthropic"), input); err != nil {
		t.Fatal(err)
	}
	wantTurn(t, s, event.Completed, "hey")
}

// Each invalid response fails the turn with the right code and message.
func TestWrongAnswers(t *testing.T) {
	for _, tt := range []struct {
		name      string
		answer    http.HandlerFunc
		code      string
		retryable bool
		words     []string
		visible   string
	}{
		{"not found", func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }, "agent_status", false, []string{"404 Not Found", "page not found"}, ""},
		{"an error as JSON", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"error":"no such\u0007 tool\nsecond line"}`)
		}, "agent_status", false, []string{"422", ": no such  tool"}, ""},
		{"a page", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `<html>login`)
		}, "agent_status", false, []string{"403 Forbidden"}, ""},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" {
				http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
				return
			}
			t.Error("the redirect was followed")
		}, "agent_status", false, []string{"307", "redirect"}, ""},
		{"nothing", func(http.ResponseWriter, *http.Request) {}, "cut_short", true, []string{"eliza-actions"}, ""},
		{"a page as answer", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
		}, "cut_short", true, []string{"text/html", "eliza-actions"}, ""},
		{"without its end", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintln(w, `{"type":"chunk","text":"half"}`)
		}, "cut_short", true, []string{"before the end of the turn"}, "half"},
		{"cut", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintln(w, `{"type":"chunk","text":"half"}`)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, "cut_short", true, []string{"broke"}, "half"},
		{"compressed", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
		}, "agent_answer", false, []string{"br"}, ""},
		{"half of a gzip", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			fmt.Fprintln(z, `{"type":"chunk","text":"half"}`)
			_ = z.Flush()
		}, "cut_short", true, []string{"broke"}, "half"},
		{"an answer without end", func(w http.ResponseWriter, _ *http.Request) {
			line := []byte(`{"type":"hum","text":"` + strings.Repeat("m", 1<<20) + `"}` + "\n")
			for {
				if _, err := w.Write(line); err != nil {
					return
				}
			}
		}, "too_large", false, []string{"larger than 64 MiB"}, ""},
		{"its own error", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintln(w, `{"type":"chunk","text":"a"}`+"\n"+`{"type":"error","message":"no model"}`)
		}, "", false, nil, "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := agenttest.NewStage(t.Context())
			err := s.Run(newAgent(t, serve(t, tt.answer), ""), input)
			if tt.code == "" {
				if err != nil {
					t.Error(err)
				}
			} else {
				wantError(t, err, tt.code, tt.retryable, tt.words...)
			}
			wantTurn(t, s, event.Failed, tt.visible)
		})
	}
}

func TestRubbish(t *testing.T) {
	for name, tt := range map[string]struct{ kind, body, want string }{
		"no JSON": {"application/x-ndjson", "hello\n", "dialect eliza-actions: frame 1: invalid JSON"},
		"events":  {"text/event-stream", "data: {}\n\n", "text/event-stream, but the dialect has lines"},
	} {
		t.Run(name, func(t *testing.T) {
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tt.kind)
				fmt.Fprint(w, tt.body)
			})
			err := agenttest.NewStage(t.Context()).Run(newAgent(t, url, ""), input)
			var bad *dialect.Error
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// A stop cancels the request, before or after the response has started, and buffered text is emitted.
func TestStop(t *testing.T) {
	for name, said := range map[string]string{"before the answer": "", "in the answer": `{"type":"chunk","text":"half"}` + "\n"} {
		t.Run(name, func(t *testing.T) {
			there, gone := make(chan struct{}), make(chan struct{})
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if _, err := io.Copy(io.Discard, r.Body); err != nil { // only then the server watches the connection
					t.Error(err)
				}
				if said != "" {
					fmt.Fprint(w, said)
					w.(http.Flusher).Flush()
				}
				close(there)
				<-r.Context().Done()
				close(gone)
			})
			s := agenttest.NewStage(t.Context())
			a := newAgent(t, url, "")
			done := make(chan error, 1)
			go func() { done <- s.Run(a, input) }()
			<-there
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
			if err := <-done; !errors.Is(err, agent.ErrTurnOver) {
				t.Errorf("Run returned %v", err)
			}
			<-gone
			if got := s.Turn().Outcome; got != event.Cancelled {
				t.Errorf("the turn is %s", got)
			}
		})
	}
}

func TestStopURL(t *testing.T) {
	told := make(chan map[string]string, 1)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if err := signaturetest.Verify("s3cret", r.Header.Get("Leat-Signature"), body, time.Now(), 0); err != nil {
			t.Error(err)
		}
		var v map[string]string
		if err := json.Unmarshal(body, &v); err != nil {
			t.Error(err)
		}
		told <- v
		if r.URL.Path == "/broken" {
			w.WriteHeader(http.StatusTeapot)
		}
	})
	stop := func(path string) error {
		a := newAgent(t, url, "?secret=s3cret&stop="+url+path).(agent.Stopper)
		return a.Stop(t.Context(), input)
	}
	if err := stop("/stop"); err != nil {
		t.Error(err)
	}
	if got := <-told; got["turn"] != "turn" || got["conversation"] != "c" || got["key"] != "key" {
		t.Errorf("the stop URL got %v", got)
	}
	if err := stop("/broken"); err == nil || !strings.Contains(err.Error(), "418") {
		t.Errorf("got %v", err)
	}
	<-told
	if err := newAgent(t, url, "").(agent.Stopper).Stop(t.Context(), input); err != nil {
		t.Error(err)
	}
}

// A 202 leaves the turn to a producer.
func TestAccepted(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
	err := newAgent(t, url, "?dialect=anthropic").Run(t.Context(), input, agent.NewEmitter(t.Context(), nil))
	var to *agent.PushPending
	if !errors.As(err, &to) || to.Dialect != "anthropic" {
		t.Errorf("got %v", err)
	}
}

func TestRefuses(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for spec, want := range map[string]string{
		"http":                                   "needs a target",
		"http:ftp://a/":                          "not an http or https URL",
		"http:/chat":                             "not an http or https URL",
		"http:http://me:pw@a/":                   "name or password",
		"http:http://a/?dialect=klingon":         "klingon",
		"http:http://a/?stop=x":                  "stop is not an http or https URL",
		"http:http://a/?secret=a&secret_file=b":  "both",
		"http:http://a/?secret_file=/none/there": "secret_file",
		"http:http://a/?secret_file=" + empty:    "is empty",
		"http:http://a/?secrets=a":               `no option "secrets"`,
		"http://127.0.0.1:8000/chat":             "",
		"http:https://a/b":                       "",
		"https://a/b?stop=https://a/stop":        "",
		"mine=https://a/b":                       "",
	} {
		s, err := agent.ParseSpec(spec)
		if err != nil {
			t.Fatal(err)
		}
		_, err = agent.Kinds{httpagent.Kind(dialects)}.Make(s)
		if want == "" && err == nil {
			continue
		}
		if err == nil || want == "" || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "pw") {
			t.Errorf("%s: got %v, want %q", spec, err, want)
		}
	}
}

// A response with gzip that wasn't requested is decoded as it arrives.
func TestGzip(t *testing.T) {
	shown := make(chan struct{})
	s := agenttest.NewStage(t.Context())
	s.OnView = func(visible string) {
		if visible == "first" {
			close(shown)
		}
	}
	err := s.Run(newAgent(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		fmt.Fprintln(z, `{"type":"chunk","text":"first"}`)
		_ = z.Flush()
		w.(http.Flusher).Flush()
		select {
		case <-shown:
		case <-r.Context().Done():
			t.Error("the first line was held back")
		}
		fmt.Fprintln(z, `{"type":"chunk","text":", then"}`+"\n"+`{"type":"done"}`)
		_ = z.Close()
	}), ""), input)
	if err != nil || s.Visible() != "first, then" {
		t.Errorf("%v; readers see %q", err, s.Visible())
	}
}
