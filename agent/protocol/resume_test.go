package protocol_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect/dialecttest"
	"github.com/leat-dev/leat/event"
)

// log is a sink that records operations and states.
type log struct {
	mu     sync.Mutex
	ops    [][]event.Event
	states []json.RawMessage // after each call of Emit
}

func (l *log) Emit(_ context.Context, ops []event.Event, state json.RawMessage) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.states); state == nil && n > 0 {
		state = l.states[n-1]
	}
	l.ops, l.states = append(l.ops, ops), append(l.states, state)
	return nil
}

func (*log) Flush(context.Context) error { return nil }
func (*log) ReportProgress()             {}

func (*log) Wait(_ context.Context, r event.Request) (event.Answer, error) {
	if r.ID != "i" {
		return event.Answer{}, errors.New("asked " + r.ID)
	}
	return event.Answer{ID: r.ID, Text: "go on"}, nil
}

// graphServer is a server with two runs: R ends with an interrupt, and R2 has the answer.
type graphServer struct {
	*httptest.Server
	mu    sync.Mutex
	posts []string
	empty bool // the events are no longer stored
}

func newGraph(t *testing.T) *graphServer {
	runs := map[string][]string{
		"R": {
			"event: metadata\ndata: {\"run_id\":\"R\"}",
			"event: messages\ndata: [{\"type\":\"AIMessageChunk\",\"id\":\"a\",\"content\":\"One \"},{}]",
			"event: messages\ndata: [{\"type\":\"AIMessageChunk\",\"id\":\"a\",\"content\":\"twö.\"},{}]",
			"event: updates\ndata: {\"__interrupt__\":[{\"id\":\"i\",\"value\":\"More?\"}]}",
		},
		"R2": {
			"event: metadata\ndata: {\"run_id\":\"R2\"}",
			"event: messages\ndata: [{\"type\":\"AIMessageChunk\",\"id\":\"b\",\"content\":\"Three \"},{}]",
			"event: messages\ndata: [{\"type\":\"AIMessageChunk\",\"id\":\"b\",\"content\":\"four.\"},{}]",
			"event: end\ndata: null",
		},
	}
	g := &graphServer{}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		run, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, threadPath+"/"), "/")
		after := 0
		switch {
		case r.Method == http.MethodPost:
			g.posts = append(g.posts, string(body))
			if run = "R"; strings.Contains(string(body), `"resume":"go on"`) {
				run = "R2"
			}
		case !strings.HasSuffix(r.URL.Path, "/stream"):
			reply(`{"status":"success"}`)(w, r)
			return
		default:
			if after, err = strconv.Atoi(r.Header.Get("Last-Event-ID")); err != nil {
				t.Error(err)
			}
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for i, f := range runs[run] {
			if i+1 > after && !g.empty {
				_, _ = io.WriteString(w, lines("id: "+strconv.Itoa(i+1)+"\n"+f))
			}
		}
	}))
	t.Cleanup(g.Close)
	return g
}

// After any commit at which a process ends, another resumes the run: no operation is missing or repeated,
// and no request is sent that may have been sent before.
func TestLangGraphResumedAnywhere(t *testing.T) {
	g := newGraph(t)
	a := newAgent(t, "langgraph:"+g.URL+"?assistant=graph")
	if !a.(agent.Drainer).NeedsDrain() {
		t.Error("nothing is known of the server, yet its runs are left to themselves")
	}
	whole := &log{}
	if err := a.Run(t.Context(), input, agent.NewEmitter(t.Context(), whole)); err != nil {
		t.Fatal(err)
	}
	if a.(agent.Drainer).NeedsDrain() {
		t.Error("the server keeps its events, yet a stop waits for its runs")
	}
	want := dialecttest.Dump(dialecttest.Fold(t, slices.Concat(whole.ops...)))
	if !strings.Contains(want, "twö") || !strings.Contains(want, "four") || len(g.posts) != 2 || len(whole.ops) < 8 {
		t.Fatalf("%d commits, %d posts\n%s", len(whole.ops), len(g.posts), want)
	}
	unsure := 0
	for cut := range len(whole.ops) {
		var state json.RawMessage
		if cut > 0 {
			state = whole.states[cut-1]
		}
		g.posts = nil
		rest := &log{}
		b := newAgent(t, "langgraph:"+g.URL+"?assistant=graph")
		if err := b.(agent.Resumer).Resume(t.Context(), input, state, agent.NewEmitter(t.Context(), rest)); err != nil {
			t.Fatalf("after %d commits: %v", cut, err)
		}
		ended := slices.Concat(rest.ops...)
		if n := len(ended); n > 0 && ended[n-1].Type == event.TurnEnd && ended[n-1].Get().Outcome == event.Interrupted {
			if unsure++; len(g.posts) > 0 {
				t.Errorf("after %d commits: sent again: %q", cut, g.posts)
			}
			continue
		}
		if diff := cmp.Diff(want, dialecttest.Dump(dialecttest.Fold(t, slices.Concat(append(slices.Clone(whole.ops[:cut]), rest.ops...)...)))); diff != "" {
			t.Errorf("after %d commits (-want +got):\n%s", cut, diff)
		}
		for _, p := range g.posts {
			if !strings.Contains(p, "resume") {
				t.Errorf("after %d commits: sent again: %s", cut, p)
			}
		}
	}
	if unsure != 2 { // before the id of the first run is known, and while the answer is being sent
		t.Errorf("interrupted at %d points, want 2", unsure)
	}
}

// If the server no longer has the output of a run, the turn isn't completed.
func TestLangGraphForgotten(t *testing.T) {
	g := newGraph(t)
	a := newAgent(t, "langgraph:"+g.URL+"?assistant=graph")
	whole := &log{}
	if err := a.Run(t.Context(), input, agent.NewEmitter(t.Context(), whole)); err != nil {
		t.Fatal(err)
	}
	g.empty = true
	err := a.(agent.Resumer).Resume(t.Context(), input, whole.states[1], agent.NewEmitter(t.Context(), &log{}))
	if shown := (*agent.Error)(nil); !errors.As(err, &shown) || shown.Code != "cut_short" {
		t.Errorf("got %v", err)
	}
}
