package call

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/dialect/agentsdk"
	"github.com/leat-dev/leat/event"
)

// server answers each request with the next response, and repeats the last one.
type server struct {
	answers []func() (*http.Response, error)
	calls   []string // Last-Event-ID of each request
	times   []time.Time
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.calls = append(s.calls, r.Header.Get("Last-Event-ID"))
	s.times = append(s.times, time.Now())
	return s.answers[min(len(s.calls), len(s.answers))-1]()
}

// talker is an agent that runs a Talk.
type talker struct {
	server  *server
	rejoins bool
}

func (a *talker) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	to := &url.URL{Scheme: "http", Host: "agent"}
	t := Talk{
		Client: &http.Client{Transport: a.server}, Dialect: agentsdk.Dialect(), Emitter: out,
		Request: func(ctx context.Context, _ []event.Answer) (*http.Request, error) {
			return Stream(ctx, to, "", in.Key, "hi")
		},
	}
	if a.rejoins {
		t.Rejoin = func(ctx context.Context, last string) (*http.Request, error) {
			req, err := Stream(ctx, to, "", in.Key, nil)
			if err == nil {
				req.Header.Set("Last-Event-ID", last)
			}
			return req, err
		}
	}
	return t.Run(ctx)
}

type broken struct{ io.Reader }

func (b broken) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func answer(status int, body io.Reader) func() (*http.Response, error) {
	return func() (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(body)}, nil
	}
}

func refused() (*http.Response, error) { return nil, errors.New("connection refused") }

const (
	begin = "id: 1\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"So \"}}\n\n"
	rest  = "id: 2\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"far\"}}\n\n" + end
	end   = "id: 3\ndata: {\"type\":\"agent_stop\"}\n\n"
)

func TestTalk(t *testing.T) {
	for name, tt := range map[string]struct {
		rejoins bool
		answers []func() (*http.Response, error)
		code    string
		visible string
		calls   string
	}{
		"refused until the end":              {answers: []func() (*http.Response, error){refused}, code: codeUnreachable, calls: "[    ] 7.5s"},
		"refused at first":                   {answers: []func() (*http.Response, error){refused, answer(200, strings.NewReader(begin+rest))}, visible: "So far", calls: "[ ] 500ms"},
		"not ready":                          {answers: []func() (*http.Response, error){answer(202, strings.NewReader("{}")), answer(200, strings.NewReader(begin+rest))}, visible: "So far", calls: "[ ] 500ms"},
		"broken before anything came":        {answers: []func() (*http.Response, error){answer(200, broken{strings.NewReader("data: {")}), answer(200, strings.NewReader(begin+rest))}, visible: "So far", calls: "[ ] 500ms"},
		"broken, and can't be resumed":       {answers: []func() (*http.Response, error){answer(200, broken{strings.NewReader(begin)})}, code: CodeCutShort, visible: "So ", calls: "[] 0s"},
		"broken, and resumed":                {rejoins: true, answers: []func() (*http.Response, error){answer(200, broken{strings.NewReader(begin)}), answer(200, strings.NewReader(rest))}, visible: "So far", calls: "[ 1] 0s"},
		"resumed when the server is back":    {rejoins: true, answers: []func() (*http.Response, error){answer(200, broken{strings.NewReader(begin)}), refused, refused, answer(200, strings.NewReader(rest))}, visible: "So far", calls: "[ 1 1 1] 1.5s"},
		"the server stays unreachable":       {rejoins: true, answers: []func() (*http.Response, error){answer(200, broken{strings.NewReader(begin)}), refused}, code: CodeCutShort, visible: "So ", calls: "[ 1 1 1 1 1] 7.5s"},
		"closed without an end isn't broken": {rejoins: true, answers: []func() (*http.Response, error){answer(200, strings.NewReader(begin))}, code: CodeCutShort, visible: "So ", calls: "[] 0s"},
		"a page instead of a stream":         {answers: []func() (*http.Response, error){func() (*http.Response, error) { return &http.Response{StatusCode: 200, Body: http.NoBody}, nil }}, code: CodeAnswer, calls: "[] 0s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{answers: tt.answers}
				stage := agenttest.NewStage(t.Context())
				err := stage.Run(&talker{s, tt.rejoins}, agent.Input{Key: "key"})
				var shown *agent.Error
				if tt.code == "" && err != nil || tt.code != "" && (!errors.As(err, &shown) || shown.Code != tt.code) {
					t.Errorf("got %v, want %q", err, tt.code)
				}
				if got := stage.Visible(); got != tt.visible {
					t.Errorf("readers see %q, want %q", got, tt.visible)
				}
				if got := fmt.Sprint(s.calls, " ", s.times[len(s.times)-1].Sub(s.times[0])); got != tt.calls {
					t.Errorf("calls %s, want %s", got, tt.calls)
				}
			})
		})
	}
}
