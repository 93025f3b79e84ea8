package http

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/dialect/elizaactions"
	"github.com/leat-dev/leat/event"
)

// upstream answers each request with the next response, and repeats the last one.
type upstream struct {
	t       *testing.T
	answers []answer
	begin   time.Time
	calls   []time.Duration // when
}

type answer struct {
	err    error
	status int
	after  string // Retry-After
	body   io.Reader
}

func (u *upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Idempotency-Key") != "key" {
		u.t.Error("a call without its idempotency key")
	}
	u.calls = append(u.calls, time.Since(u.begin))
	a := u.answers[min(len(u.calls), len(u.answers))-1]
	if a.err != nil {
		return nil, a.err
	}
	res := &http.Response{StatusCode: a.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: r}
	if a.after != "" {
		res.Header.Set("Retry-After", a.after)
	}
	if a.body != nil {
		res.Body = io.NopCloser(a.body)
	}
	return res, nil
}

// broken returns a text and then an error.
func broken(text string) io.Reader {
	return io.MultiReader(strings.NewReader(text), errReader{})
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func whole() io.Reader {
	return strings.NewReader(`{"type":"chunk","text":"hey"}` + "\n" + `{"type":"done"}` + "\n")
}

func TestRetries(t *testing.T) {
	refused := errors.New("connection refused")
	good := func() answer { return answer{status: 200, body: whole()} }
	for _, tt := range []struct {
		name    string
		answers []answer
		calls   []time.Duration
		code    string // of the error, empty where it goes well
		visible string
	}{
		{"at once", []answer{good()}, []time.Duration{0}, "", "hey"},
		{"unreachable at first", []answer{{err: refused}, {err: refused}, good()}, []time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond}, "", "hey"},
		{"never there", []answer{{err: refused}}, []time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond, 3500 * time.Millisecond, 7500 * time.Millisecond}, "agent_unreachable", ""},
		{"busy, with a hint", []answer{{status: 429, after: "7"}, {status: 503, after: "11"}, good()}, []time.Duration{0, 7 * time.Second, 18 * time.Second}, "", "hey"},
		{"busy for too long", []answer{{status: 429, after: "25"}}, []time.Duration{0, 25 * time.Second, 50 * time.Second}, "agent_status", ""},
		{"a hint beyond the limit", []answer{{status: 429, after: "61"}}, []time.Duration{0}, "agent_status", ""},
		{"its own fault", []answer{{status: 400}}, []time.Duration{0}, "agent_status", ""},
		{"disconnected before the first output", []answer{{status: 200, body: broken(`{"type":"chu`)}, good()}, []time.Duration{0, 500 * time.Millisecond}, "", "hey"},
		{"disconnected after the first output", []answer{{status: 200, body: broken(`{"type":"chunk","text":"ha"}` + "\n")}, good()}, []time.Duration{0}, "cut_short", "ha"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := &upstream{t: t, answers: tt.answers, begin: time.Now()}
				a, err := New(Config{URL: "http://agent/?key=hidden", Dialect: elizaactions.Dialect()})
				if err != nil {
					t.Fatal(err)
				}
				a.client.Transport = u
				s := agenttest.NewStage(t.Context())
				err = s.Run(a, agent.Input{Key: "key"})
				var shown *agent.Error
				switch {
				case tt.code == "" && err != nil:
					t.Error(err)
				case tt.code != "" && (!errors.As(err, &shown) || shown.Code != tt.code || strings.Contains(err.Error(), "hidden")):
					t.Errorf("got %v, want %s", err, tt.code)
				}
				if got := s.Visible(); got != tt.visible {
					t.Errorf("readers see %q, want %q", got, tt.visible)
				}
				if len(u.calls) != len(tt.calls) {
					t.Fatalf("calls at %v, want %v", u.calls, tt.calls)
				}
				phases := 0
				for _, e := range s.Events() {
					if e.Type == event.TurnUpdate && e.Get().Phase == "retrying" {
						phases++
					}
				}
				if phases != len(tt.calls)-1 {
					t.Errorf("%d calls were repeated, and readers were told %d times", len(tt.calls)-1, phases)
				}
				for i := range u.calls {
					if u.calls[i] != tt.calls[i] {
						t.Errorf("calls at %v, want %v", u.calls, tt.calls)
					}
				}
			})
		})
	}
}

// A stop ends the pause before a retry.
func TestStopWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &upstream{t: t, answers: []answer{{status: 503, after: "50"}}, begin: time.Now()}
		a, err := New(Config{URL: "http://agent/", Dialect: elizaactions.Dialect()})
		if err != nil {
			t.Fatal(err)
		}
		a.client.Transport = u
		s := agenttest.NewStage(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(a, agent.Input{Key: "key"}) }()
		time.Sleep(time.Second) // of the bubble's clock
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; !errors.Is(err, agent.ErrTurnOver) || len(u.calls) != 1 {
			t.Errorf("%v after %v", err, u.calls)
		}
	})
}
