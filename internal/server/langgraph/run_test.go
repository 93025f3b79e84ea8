package langgraph

import (
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/sse"
)

const allModes = `["values","updates","messages-tuple","messages","custom"]`

// runEvent is an event of a run stream.
type runEvent struct{ id, name, data string }

// readRun reads a run stream to its end.
func (h *harness) readRun(res *http.Response) (list []runEvent) {
	h.T.Helper()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		h.T.Fatalf("run stream: %d %s %v", res.StatusCode, b, err)
	}
	err = (&sse.Reader{}).Feed(b, func(e sse.Event) error {
		list = append(list, runEvent{e.ID, e.Name, string(e.Data)})
		return nil
	})
	if err != nil {
		h.T.Fatal(err)
	}
	return list
}

// question is the body of a request that begins a run.
func question(id, text, options string) string {
	return `{"assistant_id":"eliza","stream_mode":` + allModes + `,"input":{"messages":[{"type":"human","id":"` + id + `","content":"` + text + `"}]}` + options + `}`
}

// ahead is the id of an event that is after all of a log.
const ahead = "4503599627370496"

// join reads what is after an event of a run.
func (h *harness) join(thread, run, last string) []runEvent {
	h.T.Helper()
	return h.readRun(h.openAfter("/threads/"+thread+"/runs/"+run+
		"/stream?stream_mode=values&stream_mode=updates&stream_mode=messages-tuple&stream_mode=messages&stream_mode=custom", last))
}

// openAfter opens a run stream after an event. The response is closed at the end of the test.
func (h *harness) openAfter(path, last string) *http.Response {
	h.T.Helper()
	r, err := http.NewRequestWithContext(h.T.Context(), http.MethodGet, h.URL+prefix+path, http.NoBody)
	if err != nil {
		h.T.Fatal(err)
	}
	r.Header.Set("X-Api-Key", secret)
	r.Header.Set("Last-Event-ID", last)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		h.T.Fatal(err)
	}
	h.T.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// runClient folds the pieces of messages as the SDK does.
type runClient struct {
	ids   []string
	texts map[string]string
	state []string // the texts of the last state
	last  string
	ended string
}

func (c *runClient) apply(t *testing.T, list []runEvent) {
	t.Helper()
	if c.texts == nil {
		c.texts = map[string]string{}
	}
	for _, e := range list {
		if c.ended != "" {
			t.Fatalf("%s after the end", e.name)
		}
		c.last = e.id
		switch e.name {
		case "end", "error":
			c.ended = e.name
		case "values":
			v := decode[values](t, e.data)
			c.state = nil
			for _, m := range v.Messages {
				c.state = append(c.state, m.ID+" "+plainText(m.Content))
			}
		case "messages":
			piece := decode[[2]json.RawMessage](t, e.data)[0]
			m := decode[message](t, string(piece))
			if m.Type == "remove" {
				delete(c.texts, m.ID)
				c.ids = slices.DeleteFunc(c.ids, func(id string) bool { return id == m.ID })
				continue
			}
			if !slices.Contains(c.ids, m.ID) {
				c.ids = append(c.ids, m.ID)
			}
			c.texts[m.ID] += plainText(m.Content)
		}
	}
}

// Both runs of a turn with a question: live, after each event, after their end, after the log was compacted, and after a restart. A client that joins
// again after any event ends with the same pieces, and the same state.
func TestRunsAreTheSame(t *testing.T) {
	j := memory.New()
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	h := startHarness(t, j, eventful)
	res := h.send("", http.MethodPost, "/threads/t/runs/stream", question("u", "go", `,"if_not_exists":"create"`))
	asked := h.readRun(res)
	if got := res.Header.Get("Location"); !strings.HasPrefix(got, res.Header.Get("Content-Location")+"/stream?") {
		t.Errorf("location %s", got)
	}
	first := strings.TrimPrefix(res.Header.Get("Content-Location"), "/threads/t/runs/")
	check := func(when, run string, live []runEvent, after int) {
		t.Helper()
		want, got := &runClient{}, &runClient{}
		want.apply(t, live)
		last := "-1"
		if after >= 0 {
			got.apply(t, live[:after+1])
			last = live[after].id
		}
		got.apply(t, h.join("t", run, last))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s, after event %d of %s:\n%+v\nwant\n%+v", when, after, run, got, want)
		}
	}
	for i := range len(asked) - 1 {
		check("while the question waits", first, asked, i-1)
	}
	res = h.send("", http.MethodPost, "/threads/t/runs/stream", `{"assistant_id":"eliza","input":null,"command":{"resume":true},"stream_mode":`+allModes+`}`)
	answered := h.readRun(res)
	second := strings.TrimPrefix(res.Header.Get("Content-Location"), "/threads/t/runs/")
	if !strings.HasPrefix(second, first+".") {
		t.Fatalf("the runs are %s and %s", first, second)
	}
	all := map[string][]runEvent{first: asked, second: answered}
	for run, live := range all {
		for i := range len(live) - 1 {
			check("after the end", run, live, i-1)
		}
	}
	if last := asked[len(asked)-1]; last.name != "end" || !strings.Contains(asked[len(asked)-2].data, `"__interrupt__":[{`) {
		t.Errorf("the first run ends with %v", asked[len(asked)-2:])
	}
	conversation, _, err := h.Gateway.Turn(t.Context(), gateway.Principal{Admin: true}, gateway.ActionRead, first)
	if err != nil {
		t.Fatal(err)
	}
	_, release, err := h.Gateway.PauseCompaction(t.Context(), gateway.Principal{Admin: true}, conversation)
	if err != nil {
		t.Fatal(err)
	}
	release()
	h.Stop()
	h = startHarness(t, j, eventful)
	for run, live := range all {
		check("restarted", run, live, -1)
		check("restarted", run, live, len(live)/2)
	}
	st := h.state("t")
	client := &runClient{}
	client.apply(t, answered)
	var want []string
	for _, m := range st.Values.Messages {
		want = append(want, m.ID+" "+plainText(m.Content))
	}
	if !slices.Equal(client.state, want) {
		t.Errorf("the stream ends with %q, and the state is %q", client.state, want)
	}
}

// A run that is waited for returns the state, its questions, or its error. A run without a thread has a new one.
func TestWait(t *testing.T) {
	h := newHarness(t, asking)
	got := h.ask(http.StatusOK, "", http.MethodPost, "/runs/wait", question("u", "go", ""))
	if v := decode[runOutcome](t, got); len(v.Interrupts) != 1 || v.Error != nil || len(v.Messages) != 2 {
		t.Errorf("%s", got)
	}
	list := decode[[]threadInfo](t, h.ask(http.StatusOK, "", http.MethodPost, "/threads/search", `{"status":"interrupted"}`))
	if len(list) != 1 {
		t.Fatalf("%d threads wait", len(list))
	}
	thread := list[0].ID
	runs := decode[[]runInfo](t, h.ask(http.StatusOK, "", http.MethodGet, "/threads/"+thread+"/runs", ""))
	if len(runs) != 1 || runs[0].Status != statusInterrupted {
		t.Fatalf("%+v", runs)
	}
	if joined := h.ask(http.StatusOK, "", http.MethodGet, "/threads/"+thread+"/runs/"+runs[0].ID+"/join", ""); strings.TrimSpace(joined) != strings.TrimSpace(got) {
		t.Errorf("joined: %s, want %s", joined, got)
	}
	got = h.ask(http.StatusOK, "", http.MethodPost, "/threads/"+thread+"/runs/wait", `{"assistant_id":"eliza","command":{"resume":{"decisions":[{"type":"approve"}]}}}`)
	if v := decode[runOutcome](t, got); len(v.Interrupts) != 0 || plainText(v.Messages[1].Content) != "I need to look. The answer is approve." {
		t.Errorf("%s", got)
	}
}

// A run is joined without its thread by its owner only.
func TestJoinWithoutThread(t *testing.T) {
	h := newHarness(t, echo)
	run := decode[runInfo](t, h.ask(http.StatusOK, "alice", http.MethodPost, "/runs", question("u", "hello", "")))
	path := "/runs/" + run.ID + "/stream"
	got := h.ask(http.StatusOK, "alice", http.MethodGet, path+"?stream_mode=values", "")
	if want := h.ask(http.StatusOK, "alice", http.MethodGet, "/threads/"+run.Thread+path+"?stream_mode=values", ""); got != want || !strings.Contains(got, "hello") {
		t.Errorf("%s, want %s", got, want)
	}
	h.ask(http.StatusNotFound, "bob", http.MethodGet, path, "")
	h.ask(http.StatusNotFound, "alice", http.MethodGet, "/runs/none/stream", "")
	h.ask(http.StatusNotFound, "alice", http.MethodGet, "/runs/"+run.ID+".x/stream", "")
}

// What runs refuse.
func TestRunRefusals(t *testing.T) {
	h := newHarness(t, echo)
	h.run("t", "u", "hello")
	for body, status := range map[string]int{
		question("v", "x", `,"webhook":"http://127.0.0.1/"`):                                                   http.StatusUnprocessableEntity,
		question("v", "x", `,"after_seconds":5`):                                                               http.StatusUnprocessableEntity,
		question("v", "x", `,"on_completion":"delete"`):                                                        http.StatusUnprocessableEntity,
		question("v", "x", `,"on_disconnect":"x"`):                                                             http.StatusBadRequest,
		`{"assistant_id":"eliza","stream_mode":"debug","input":{"messages":[{"type":"human","content":"x"}]}}`: http.StatusUnprocessableEntity,
		`{"assistant_id":"none","input":{"messages":[{"type":"human","content":"x"}]}}`:                        http.StatusNotFound,
		`{"assistant_id":"eliza","command":{"resume":true}}`:                                                   http.StatusConflict,
		`{"assistant_id":"eliza","input":null,"checkpoint":{"checkpoint_id":"x"}}`:                             http.StatusNotFound,
		`{"assistant_id":"eliza","input":"x"}`:                                                                 http.StatusBadRequest,
	} {
		if got := decode[errorBody](t, h.ask(status, "", http.MethodPost, "/threads/t/runs/stream", body)); got.Detail == "" {
			t.Errorf("%s: %+v", body, got)
		}
	}
	h.ask(http.StatusNotFound, "", http.MethodPost, "/threads/none/runs/stream", question("v", "x", ""))
	// A run without a thread that is refused leaves none.
	h.ask(http.StatusBadRequest, "", http.MethodPost, "/runs/wait", `{"assistant_id":"eliza","input":{"messages":[]}}`)
	if list := decode[[]threadInfo](t, h.ask(http.StatusOK, "", http.MethodPost, "/threads/search", `{}`)); len(list) != 1 {
		t.Errorf("%d threads", len(list))
	}
	if st := h.state("t"); len(st.Values.Messages) != 2 {
		t.Errorf("a refusal has changed the thread: %v", st.texts())
	}
	// The newest checkpoint that an older page knows doesn't remove what was added since.
	list := decode[[]threadState](t, h.ask(http.StatusOK, "", http.MethodPost, "/threads/t/history", `{}`))
	h.run("t", "w", "two")
	h.readRun(h.send("", http.MethodPost, "/threads/t/runs/stream", question("v", "three", `,"checkpoint":{"checkpoint_id":"`+list[0].Checkpoint.ID+`"}`)))
	if st := h.state("t"); len(st.Values.Messages) != 6 {
		t.Errorf("%v", st.texts())
	}
}
