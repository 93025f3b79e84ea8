package langgraph

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

const allChannels = `["lifecycle","checkpoints","values","updates","messages","tools","input","custom"]`

// eventful is an agent whose answer has everything: texts at the same time, one that is taken back, tools, a status, data and a question.
var eventful = agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
	ops := []event.Event{
		{Type: event.MessageStart, Message: "m", Body: &event.Body{Role: event.Assistant}},
		{Type: event.PartStart, Message: "m", Part: "r", Body: &event.Body{Kind: event.KindReasoning}},
		{Type: event.PartAppend, Message: "m", Part: "r", Text: "hm"},
		{Type: event.PartStart, Message: "m", Part: "t", Body: &event.Body{Kind: event.KindText}},
		{Type: event.PartAppend, Message: "m", Part: "t", Text: "It is "},
		{Type: event.PartAppend, Message: "m", Part: "t", Text: "nine."},
		{Type: event.PartStart, Message: "m", Part: "c", Body: &event.Body{Kind: event.KindTool, Name: "clock", Call: "c"}},
		{Type: event.PartAppend, Message: "m", Part: "c", Field: event.Input, Text: `{"zone":`},
		{Type: event.PartReplace, Message: "m", Part: "t", Text: "It is ten."},
		{Type: event.MessageStart, Message: "n", Body: &event.Body{Role: event.Assistant}},
		{Type: event.PartStart, Message: "n", Part: "t", Body: &event.Body{Kind: event.KindText}},
		{Type: event.PartAppend, Message: "n", Part: "t", Text: "meanwhile "},
		{Type: event.PartAppend, Message: "m", Part: "t", Text: " Or so."},
		{Type: event.PartAppend, Message: "m", Part: "c", Field: event.Input, Text: `"UTC"}`},
		{Type: event.PartAppend, Message: "m", Part: "c", Field: event.Output, Text: "noon"},
		{Type: event.PartStart, Message: "n", Part: "d", Body: &event.Body{Kind: event.KindData, Name: "chart", Data: []byte(`[1]`)}},
	}
	for _, op := range ops {
		if err := out.Emit([]event.Event{op}, nil); err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	if _, err := out.Ask(ctx, event.Request{ID: "ask", Kind: event.RequestApproval, Tool: "clock", Prompt: "May I?"}); err != nil {
		return err
	}
	return out.Emit([]event.Event{
		{Type: event.PartUpdate, Message: "m", Part: "c", Body: &event.Body{State: event.PartDone}},
		{Type: event.PartEnd, Message: "m", Part: "c"},
		{Type: event.PartAppend, Message: "m", Part: "t", Text: " Done."},
		{Type: event.PartAppend, Message: "n", Part: "t", Text: "more"},
	}, nil)
})

func isCompleted(e received) bool {
	return e.Method == methodLifecycle && strings.HasSuffix(e.ID, ":completed")
}

// The events of a thread are the same for all readers: while it runs, after its end, after the log was compacted, and after a restart. A client that
// names the last event that it has gets those after it.
func TestEventsAreTheSame(t *testing.T) {
	j := memory.New()
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	h := startHarness(t, j, eventful)
	run := h.start("", "t", "u", "go", "")
	isAsked := false
	live := h.events("t", `{"channels":`+allChannels+`}`, func(e received) bool {
		if e.Method == methodInput && !isAsked {
			isAsked = true
			var data inputData
			if err := json.Unmarshal(e.Params.Data, &data); err != nil {
				t.Fatal(err)
			}
			h.ask(http.StatusOK, "", http.MethodPost, "/threads/t/commands", `{"id":2,"method":"input.respond","params":{"namespace":[],"interrupt_id":"`+data.ID+`","response":true}}`)
		}
		return isCompleted(e)
	})
	seen := map[string]bool{}
	for i, e := range live {
		if seen[e.ID] {
			t.Errorf("two events have the id %s", e.ID)
		}
		seen[e.ID] = true
		if i > 0 && e.Seq <= live[i-1].Seq {
			t.Errorf("event %s has the seq %d, after %d", e.ID, e.Seq, live[i-1].Seq)
		}
	}
	if run.Result == nil || !seen["synth:"+run.Result.(map[string]any)["run_id"].(string)+":running"] {
		t.Errorf("the run %v is not among the events", run.Result)
	}
	check := func(when string, after int) {
		t.Helper()
		subscription := `{"channels":` + allChannels
		want := live
		if after >= 0 {
			subscription += fmt.Sprintf(`,"since":%d`, live[after].Seq)
			want = live[after+1:]
		}
		if got := h.events("t", subscription+"}", isCompleted); !reflect.DeepEqual(got, want) {
			t.Errorf("%s, after %d:\n%s\nwant\n%s", when, after, describe(got), describe(want))
		}
	}
	check("after the end", -1)
	for i := range len(live) - 1 {
		check("after the end", i)
	}
	c, _, err := h.Gateway.Turn(t.Context(), gateway.Principal{Admin: true}, gateway.ActionRead, run.Result.(map[string]any)["run_id"].(string))
	if err != nil {
		t.Fatal(err)
	}
	_, release, err := h.Gateway.PauseCompaction(t.Context(), gateway.Principal{Admin: true}, c)
	if err != nil {
		t.Fatal(err)
	}
	release()
	check("compacted", -1)
	h.Stop()
	h = startHarness(t, j, eventful)
	check("restarted", -1)
	check("restarted", len(live)/2)
}

func describe(list []received) string {
	var b strings.Builder
	for _, e := range list {
		fmt.Fprintf(&b, "%d %s %.200s\n", e.Seq, e.ID, e.Params.Data)
	}
	return b.String()
}

// A client assembles the blocks of each message as the SDK does, one message of a node at a time. They are those of the state.
func TestMessagesAreThoseOfTheState(t *testing.T) {
	h := newHarness(t, eventful)
	h.run("t", "u", "go")
	st := h.state("t")
	if len(st.Interrupts) != 1 {
		t.Fatalf("%d interrupts", len(st.Interrupts))
	}
	h.ask(http.StatusOK, "", http.MethodPost, "/threads/t/commands", `{"id":2,"method":"input.respond","params":{"interrupt_id":"`+st.Interrupts[0].ID+`","response":{"approved":true}}}`)
	texts, active, open := map[string]string{}, map[string]string{}, map[string]bool{} // active is by node
	h.events("t", `{"channels":["messages","lifecycle"]}`, func(e received) bool {
		if e.Method != methodMessages {
			return isCompleted(e)
		}
		var d messageData
		if err := json.Unmarshal(e.Params.Data, &d); err != nil {
			t.Fatal(err)
		}
		if d.Event == "message-start" {
			active[e.Params.Node] = d.ID
		}
		id := active[e.Params.Node]
		switch d.Event {
		case "message-start":
			texts[id], open[id] = "", true
		case "content-block-start":
			if d.Content.Text != nil {
				texts[id] = *d.Content.Text
			}
		case "content-block-delta":
			texts[id] += d.Delta.Text
		case "content-block-finish":
			if d.Content.Text != nil {
				texts[id] = *d.Content.Text
			}
		case "message-finish":
			delete(open, id)
		}
		return false
	})
	if len(open) > 0 {
		t.Errorf("not finished: %v", open)
	}
	st = h.state("t")
	for _, m := range st.Values.Messages[1:] {
		text := plainText(m.Content)
		if texts[m.ID] != text {
			t.Errorf("message %s has %q, and in the state %q", m.ID, texts[m.ID], text)
		}
		delete(texts, m.ID)
	}
	if len(texts) > 0 {
		t.Errorf("not in the state: %v", texts)
	}
}

// plainText returns the texts of a content.
func plainText(content json.RawMessage) (text string) {
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var blocks []block
	if json.Unmarshal(content, &blocks) == nil {
		for _, b := range blocks {
			if b.Text != nil {
				text += *b.Text
			}
		}
	}
	return text
}

// A client that is connected while nothing runs sees messages that no turn has written.
func TestMessagesOutsideTurns(t *testing.T) {
	h := newHarness(t, echo)
	h.run("t", "u", "hello")
	admin := gateway.Principal{Admin: true}
	list, err := h.Gateway.List(t.Context(), admin, nil, 1)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	isInjected := false
	h.events("t", `{"channels":["values","lifecycle"]}`, func(e received) bool {
		if isCompleted(e) && !isInjected {
			isInjected = true
			m := &gateway.CommandMessage{Role: event.Assistant, Text: "by the way"}
			if _, err := h.Gateway.Do(t.Context(), admin, list[0].ID, gateway.Command{Type: gateway.CommandInject, Message: m}); err != nil {
				t.Fatal(err)
			}
		}
		return e.Method == methodValues && strings.Contains(string(e.Params.Data), "by the way")
	})
}

// A turn that is stopped is a run that was interrupted, and one that fails has its reason.
func TestEnds(t *testing.T) {
	h := newHarness(t, waiting)
	r := h.start("", "t", "u", "go", "")
	run := r.Result.(map[string]any)["run_id"].(string)
	isStopped := false
	list := h.events("t", `{"channels":["lifecycle","messages"]}`, func(e received) bool {
		if strings.Contains(string(e.Params.Data), "so far") && !isStopped {
			isStopped = true
			h.ask(http.StatusNoContent, "", http.MethodPost, "/threads/t/runs/"+run+"/cancel?wait=0&action=interrupt", "")
		}
		return e.ID == "synth:"+run+":interrupted"
	})
	if !slices.ContainsFunc(list, func(e received) bool { return strings.HasPrefix(e.ID, "finish:") }) {
		t.Errorf("the message was not finished:\n%s", describe(list))
	}
	if got := decode[runInfo](t, h.ask(http.StatusOK, "", http.MethodGet, "/threads/t/runs/"+run, "")); got.Status != statusInterrupted || got.ID != run {
		t.Errorf("%+v", got)
	}

	failing := newHarness(t, agentFunc(func(context.Context, agent.Input, *agent.Emitter) error {
		return &agent.Error{Code: "overloaded", Message: "The model is busy."}
	}))
	failing.start("", "t", "u", "go", "")
	failing.events("t", `{"channels":["lifecycle"]}`, func(e received) bool {
		return strings.HasSuffix(e.ID, ":failed") && strings.Contains(string(e.Params.Data), "The model is busy.")
	})
	if got := decode[threadInfo](t, failing.ask(http.StatusOK, "", http.MethodGet, "/threads/t", "")); got.Status != statusError {
		t.Errorf("%+v", got)
	}
}
