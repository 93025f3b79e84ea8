package langgraph

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/leat-dev/leat/event"
)

// Two users with the same thread id have two threads, and see nothing of each other's.
func TestThreadsAreTheirs(t *testing.T) {
	h := newHarness(t, echo)
	for _, subject := range []string{"alice", "bob"} {
		h.ask(http.StatusOK, subject, http.MethodPost, "/threads", `{"thread_id":"same","metadata":{"note":"`+subject+`"}}`)
		h.ask(http.StatusConflict, subject, http.MethodPost, "/threads", `{"thread_id":"same"}`)
		if got := h.ask(http.StatusOK, subject, http.MethodPost, "/threads", `{"thread_id":"same","if_exists":"do_nothing"}`); !strings.Contains(got, `"note":"`+subject+`"`) {
			t.Errorf("%s gets %s", subject, got)
		}
		h.start(subject, "same", "m", "I am "+subject, "")
	}
	for subject, other := range map[string]string{"alice": "bob", "bob": "alice"} {
		for _, body := range []string{
			h.ask(http.StatusOK, subject, http.MethodGet, "/threads/same/state", ""),
			h.ask(http.StatusOK, subject, http.MethodPost, "/threads/search", `{"metadata":{"note":"`+subject+`"}}`),
		} {
			if strings.Contains(body, other) || !strings.Contains(body, subject) || !strings.Contains(body, `"thread_id":"same"`) {
				t.Errorf("%s gets %s", subject, body)
			}
		}
		if got := h.ask(http.StatusOK, subject, http.MethodPost, "/threads/search", `{"metadata":{"note":"`+other+`"}}`); got != "[]\n" {
			t.Errorf("%s finds %s", subject, got)
		}
	}
	h.ask(http.StatusNotFound, "carol", http.MethodGet, "/threads/same/state", "")
	h.ask(http.StatusNotFound, "carol", http.MethodPost, "/threads/same/stream/events", `{"channels":["values"]}`)
	h.ask(http.StatusNoContent, "bob", http.MethodDelete, "/threads/same", "")
	h.ask(http.StatusNotFound, "bob", http.MethodGet, "/threads/same", "")
	h.ask(http.StatusOK, "alice", http.MethodGet, "/threads/same", "")
}

// Refusals say what to do. Those of commands are errors of the protocol.
func TestRefusals(t *testing.T) {
	h := newHarness(t, echo)
	h.run("t", "u", "hello")
	for body, want := range map[string]string{
		`{"id":1,"method":"nothing"}`: "unknown_command",
		`{"id":1,"method":"run.start","params":{"assistant_id":"x","input":{"messages":[{"type":"human","content":"x"}]}}}`:                                 "invalid_argument",
		`{"id":1,"method":"run.start","params":{"assistant_id":"eliza","input":{"messages":[{"type":"ai","content":"x"}]}}}`:                                "invalid_argument",
		`{"id":1,"method":"run.start","params":{"assistant_id":"eliza","input":null}}`:                                                                      "invalid_argument",
		`{"id":1,"method":"run.start","params":{"assistant_id":"eliza","interrupt_before":["*"],"input":{"messages":[{"type":"human","content":"x"}]}}}`:    "not_supported",
		`{"id":1,"method":"run.start","params":{"assistant_id":"eliza","command":{"goto":"x"},"input":{"messages":[{"type":"human","content":"x"}]}}}`:      "not_supported",
		`{"id":1,"method":"run.start","params":{"assistant_id":"eliza","input":{"messages":[{"type":"human","content":[{"type":"file","file_id":"f"}]}]}}}`: "invalid_argument",
		`{"id":1,"method":"input.respond","params":{"interrupt_id":"x","response":true}}`:                                                                   "no_such_interrupt",
		`{"id":1,"method":"input.respond","params":{}}`:                                                                                                     "invalid_argument",
		`{"id":1,"method":"input.respond","params":{"interrupt_id":"x","response":true,"update":{"a":1}}}`:                                                  "not_supported",
		`{"id":1,"method":"input.inject","params":{"message":{"role":"system","content":"x"}}}`:                                                             "not_supported",
		`{"id":1,"method":"state.fork","params":{}}`:                                                                                                        "not_supported",
	} {
		got := decode[commandResponse](t, h.ask(http.StatusOK, "", http.MethodPost, "/threads/t/commands", body))
		if got.Type != "error" || got.Error != want || got.Message == "" {
			t.Errorf("%s: %+v, want %s", body, got, want)
		}
	}
	for _, c := range []struct {
		status             int
		method, path, body string
	}{
		{http.StatusBadRequest, http.MethodPost, "/threads/t/commands", `{}`},
		{http.StatusBadRequest, http.MethodPost, "/threads/t/stream/events", `{"channels":["x"]}`},
		{http.StatusNotFound, http.MethodPost, "/threads/none/commands", `{"id":1,"method":"input.respond","params":{"interrupt_id":"x"}}`},
		{http.StatusNotFound, http.MethodGet, "/threads/t/runs/none", ""},
		{http.StatusNotFound, http.MethodGet, "/assistants/none", ""},
		{http.StatusNotFound, http.MethodPost, "/threads", `{"metadata":{"graph_id":"none"}}`},
		{http.StatusUnprocessableEntity, http.MethodPost, "/threads", `{"supersteps":[{}]}`},
		{http.StatusBadRequest, http.MethodGet, "/threads/t/runs?limit=x", ""},
	} {
		if got := decode[errorBody](t, h.ask(c.status, "", c.method, c.path, c.body)); got.Detail == "" || got.Detail != got.Message {
			t.Errorf("%s: %+v", c.path, got)
		}
	}
	if st := h.state("t"); len(st.Values.Messages) != 2 {
		t.Errorf("a refusal has changed the thread: %v", st.texts())
	}
}

// What becomes of a run that is running when another message comes.
func TestMultitask(t *testing.T) {
	for _, c := range []struct {
		strategy string
		code     string   // of the refusal
		texts    []string // of the state while the last run is running, or waits
	}{
		{"reject", "invalid_argument", []string{`human "one"`}},
		{"enqueue", "", []string{`human "one"`}},
		{"interrupt", "", []string{`human "one"`, `ai "so far"`, `human "two"`}},
		{"rollback", "", []string{`human "two"`}},
		{"unknown", "invalid_argument", []string{`human "one"`}},
	} {
		t.Run(c.strategy, func(t *testing.T) {
			h := newHarness(t, waiting)
			h.start("", "t", "a", "one", "")
			hasText := func(e received) bool { return strings.Contains(string(e.Params.Data), "so far") }
			h.events("t", `{"channels":["messages"]}`, hasText)
			r := h.start("", "t", "b", "two", `,"multitask_strategy":"`+c.strategy+`"`)
			if r.Error != c.code {
				t.Fatalf("%+v", r)
			}
			if c.strategy == "interrupt" || c.strategy == "rollback" {
				run := r.Result.(map[string]any)["run_id"].(string)
				h.events("t", `{"channels":["lifecycle"]}`, func(e received) bool { return e.ID == "synth:"+run+":running" })
			}
			st := h.state("t")
			if got := st.texts(); !slices.Equal(got, c.texts) {
				t.Errorf("%q, want %q", got, c.texts)
			}
			runs := decode[[]runInfo](t, h.ask(http.StatusOK, "", http.MethodGet, "/threads/t/runs?status=pending", ""))
			if isQueued := c.strategy == "enqueue"; (len(runs) == 1) != isQueued {
				t.Errorf("%d runs wait", len(runs))
			}
		})
	}
}

// Of runs that begin at the same moment, the strategy reject accepts one. Without the lock, most runs of this test fail.
func TestRejectAtOnce(t *testing.T) {
	h := newHarness(t, waiting)
	for i := range 30 {
		thread := fmt.Sprint("t", i)
		h.ask(http.StatusOK, "", http.MethodPost, "/threads", `{"thread_id":"`+thread+`"}`)
		codes := make(chan string)
		for j := range 8 {
			go func() {
				code := "no response"
				defer func() { codes <- code }() // also if start ends the goroutine
				code = h.start("", thread, fmt.Sprint("m", j), "hello", `,"multitask_strategy":"reject"`).Error
			}()
		}
		accepted := 0
		for range 8 {
			switch code := <-codes; code {
			case "":
				accepted++
			case "invalid_argument":
			default:
				t.Errorf("a run is refused with %q", code)
			}
		}
		if st := h.state(thread); accepted != 1 || len(st.texts()) != 1 {
			t.Fatalf("%d runs are accepted, and the thread has the messages %q", accepted, st.texts())
		}
	}
}

// A new message takes the place of the answer to a question.
func TestMessageInsteadOfAnswer(t *testing.T) {
	h := newHarness(t, asking)
	h.run("t", "a", "one")
	h.run("t", "b", "two")
	st := h.state("t")
	if got, want := st.texts(), []string{`human "one"`, `ai "I need to look. "`, `human "two"`, `ai "I need to look. "`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if len(st.Interrupts) != 1 {
		t.Errorf("%d questions wait", len(st.Interrupts))
	}
}

// A message is edited, and another one answered again, from the checkpoints that the history has.
func TestCheckpoints(t *testing.T) {
	h := newHarness(t, echo)
	h.run("t", "a", "one")
	h.run("t", "b", "two")
	list := decode[[]threadState](t, h.ask(http.StatusOK, "", http.MethodPost, "/threads/t/history", `{"limit":20}`))
	sizes := []int{}
	for i := range list {
		sizes = append(sizes, len(list[i].Values.Messages))
		if i > 0 && list[i].Checkpoint.ID >= list[i-1].Checkpoint.ID {
			t.Errorf("checkpoint %s is listed after %s", list[i].Checkpoint.ID, list[i-1].Checkpoint.ID)
		}
		if i > 0 && (list[i-1].Parent == nil || list[i-1].Parent.ID != list[i].Checkpoint.ID) {
			t.Errorf("the parent of %s is %v, not %s", list[i-1].Checkpoint.ID, list[i-1].Parent, list[i].Checkpoint.ID)
		}
	}
	if want := []int{4, 3, 2, 1}; !slices.Equal(sizes, want) {
		t.Fatalf("states of %v messages, want %v", sizes, want)
	}
	before := decode[[]threadState](t, h.ask(http.StatusOK, "", http.MethodPost, "/threads/t/history", `{"before":{"configurable":{"checkpoint_id":"`+list[1].Checkpoint.ID+`"}}}`))
	if len(before) != 2 {
		t.Errorf("%d states before", len(before))
	}
	// The answer to two is given again.
	again := `{"id":1,"method":"run.start","params":{"assistant_id":"eliza","input":null,"config":{"configurable":{"checkpoint_id":"` + list[1].Checkpoint.ID + `"}}}}`
	old := list[0].Values.Messages
	if r := decode[commandResponse](t, h.ask(http.StatusOK, "", http.MethodPost, "/threads/t/commands", again)); r.Type != "success" {
		t.Fatalf("%+v", r)
	}
	st := h.settle("t")
	if got, want := st.texts(), []string{`human "one"`, `ai "re: one"`, `human "two"`, `ai "re: two"`}; !slices.Equal(got, want) || st.Values.Messages[3].ID == old[3].ID {
		t.Errorf("%q, want %q with another answer", got, want)
	}
	// The message two is edited.
	if r := h.start("", "t", "c", "three", `,"config":{"configurable":{"checkpoint_id":"`+list[2].Checkpoint.ID+`"}}`); r.Type != "success" {
		t.Fatalf("%+v", r)
	}
	st = h.settle("t")
	if got, want := st.texts(), []string{`human "one"`, `ai "re: one"`, `human "three"`, `ai "re: three"`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The forms in which pages answer.
func TestAnswers(t *testing.T) {
	approval := &event.Request{ID: "r", Kind: event.RequestApproval, Tool: "shell"}
	question := &event.Request{ID: "r", Kind: event.RequestInput, Options: []string{"red", "blue"}}
	tool := &event.Request{ID: "r", Kind: event.RequestInput, Tool: "where"}
	for _, c := range []struct {
		r              *event.Request
		value          string
		decision, text string
	}{
		{approval, `{"decisions":[{"type":"approve"}]}`, "approve", ""},
		{approval, `{"decisions":[{"type":"reject","message":"no"}]}`, "deny", "no"},
		{approval, `[{"type":"accept"}]`, "approve", ""},
		{approval, `[{"type":"ignore"}]`, "deny", ""},
		{approval, `[{"type":"response","args":"not now"}]`, "deny", "not now"},
		{approval, `true`, "approve", ""},
		{approval, `false`, "deny", ""},
		{approval, `{"approved":false,"reason":"no"}`, "deny", "no"},
		{approval, `null`, "approve", ""},
		{question, `"Red"`, "red", ""},
		{question, `{"text":"green"}`, "", "green"},
		{tool, `"here"`, "", "here"},
		{tool, `{"t.r":"here"}`, "", "here"},
		{tool, `{"t.r":{"error":"lost"}}`, "", "Error: lost"},
		{tool, `{"lat":1}`, "", `{"lat":1}`},
		{tool, `""`, "", "(no output)"},
	} {
		got, err := answerTo("t", c.r, []byte(c.value))
		if err != nil || string(got.Decision) != c.decision || got.Text != c.text {
			t.Errorf("%s: %q %q %v, want %q %q", c.value, got.Decision, got.Text, err, c.decision, c.text)
		}
	}
	if _, err := answerTo("t", approval, []byte(`{"decisions":[{"type":"edit"}]}`)); err == nil {
		t.Error("edited arguments were accepted")
	}
}
