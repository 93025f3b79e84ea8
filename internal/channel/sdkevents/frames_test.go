package sdkevents_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/sdkevents"
	"github.com/leat-dev/leat/transcript"
)

// steps returns events as one step each.
func steps(events ...event.Event) []channel.StreamEvent {
	var list []channel.StreamEvent
	for i, e := range slices.Concat([]event.Event{
		{Type: event.TurnStart, Body: &event.Body{Agent: "a"}},
		{Type: event.MessageStart, Message: "m", Body: &event.Body{Role: event.Assistant}},
	}, events) {
		e.Seq, e.Turn = int64(i+1), turn
		list = append(list, channel.StreamEvent{Events: []event.Event{e}})
	}
	return list
}

func start(part string, kind event.PartKind, state event.PartState) event.Event {
	b := &event.Body{Kind: kind, State: state, Join: event.JoinBlank}
	if kind == event.KindTool {
		b.Name, b.Call = "Search", "t-"+part
	}
	return event.Event{Type: event.PartStart, Message: "m", Part: part, Body: b}
}

func text(part string, f event.Field, offset int64, added string) event.Event {
	return event.Event{Type: event.PartAppend, Message: "m", Part: part, Field: f, Offset: offset, Text: added}
}

func replace(part string, f event.Field, text string) event.Event {
	return event.Event{Type: event.PartReplace, Message: "m", Part: part, Field: f, Text: text}
}

func state(part string, s event.PartState) event.Event {
	return event.Event{Type: event.PartUpdate, Message: "m", Part: part, Body: &event.Body{State: s}}
}

func end(o event.Outcome, e *event.Error) event.Event {
	return event.Event{Type: event.TurnEnd, Body: &event.Body{Outcome: o, Error: e}}
}

// beginning are the frames before the first content.
const beginning = `{"type":"agent_start"}
{"type":"iteration_start","iteration":0}
{"type":"message_start","message":{"role":"assistant"}}
`

func TestFrames(t *testing.T) {
	for name, c := range map[string]struct {
		steps []channel.StreamEvent
		want  string
	}{
		"a tool between texts": {steps(
			start("p1", event.KindText, ""), text("p1", event.Text, 0, "Lo"), text("p1", event.Text, 2, "ok."),
			start("p2", event.KindTool, event.PartRunning), text("p2", event.Input, 0, `{"q":`), text("p2", event.Input, 5, `"é"}`),
			start("p3", event.KindText, ""), text("p3", event.Text, 0, "Done."), // waits for the tool
			text("p2", event.Output, 0, "3 "), text("p2", event.Stderr, 0, "warn"),
			text("p2", event.Output, 2, "hits"), replace("p2", event.Output, "4 hits"),
			state("p2", event.PartDone), end(event.Completed, nil),
		), beginning + `{"type":"content_block_start","index":0,"content_block":{"type":"text"}}
{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Lo"}}
{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"ok."}}
{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t-p2","name":"Search"}}
{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"q\":"}}
{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"\"é\"}"}}
{"type":"content_block_stop","index":1}
{"type":"tool_execution_start","tool_use_id":"t-p2","name":"Search","iteration":0}
{"type":"tool_execution_output","tool_use_id":"t-p2","name":"Search","output":"3 ","is_stderr":false}
{"type":"tool_execution_output","tool_use_id":"t-p2","name":"Search","output":"warn","is_stderr":true}
{"type":"tool_execution_output","tool_use_id":"t-p2","name":"Search","output":"hits","is_stderr":false}
{"type":"tool_execution_output","tool_use_id":"t-p2","name":"Search","output":"4 hits"}
{"type":"tool_execution_result","tool_use_id":"t-p2","name":"Search","output":{"output":"4 hits"}}
{"type":"content_block_stop","index":0}
{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{}}
{"type":"message_stop"}
{"type":"iteration_stop","iteration":0}
{"type":"iteration_start","iteration":1}
{"type":"message_start","message":{"role":"assistant"}}
{"type":"content_block_start","index":0,"content_block":{"type":"text"}}
{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Done."}}
{"type":"content_block_stop","index":0}
{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{}}
{"type":"message_stop"}
{"type":"iteration_stop","iteration":1}
{"type":"agent_stop"}`},
		"a replaced text, and a failure": {steps(
			start("p1", event.KindStatus, ""), text("p1", event.Text, 0, "Wait"), replace("p1", event.Text, "Found"),
			end(event.Failed, &event.Error{Message: "529 overloaded"}),
		), beginning + `{"type":"content_block_start","index":0,"content_block":{"type":"text"}}
{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Wait"}}
{"type":"content_block_start","index":0,"content_block":{"type":"text"}}
{"type":"content_block_stop","index":0}
{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{}}
{"type":"message_stop"}
{"type":"iteration_stop","iteration":0}
{"type":"iteration_start","iteration":1}
{"type":"message_start","message":{"role":"assistant"}}
{"type":"content_block_start","index":0,"content_block":{"type":"text"}}
{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Found"}}
{"type":"error","output":"529 overloaded","is_error":true}`},
		"a tool that runs when the turn is cancelled": {steps(
			start("p1", event.KindTool, event.PartRunning), end(event.Cancelled, nil),
		), beginning + `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t-p1","name":"Search"}}
{"type":"content_block_stop","index":0}
{"type":"tool_execution_start","tool_use_id":"t-p1","name":"Search","iteration":0}
{"type":"tool_execution_result","tool_use_id":"t-p1","name":"Search","output":{"metadata":{"error":"the turn ended: cancelled","is_error":true}}}
{"type":"error","output":"context canceled","is_error":true}`},
		"the limit of iterations": {
			steps(end(event.Failed, &event.Error{Code: "max_iterations", Message: "too many"})),
			beginning + `{"type":"error","output":"max iterations reached","is_error":true}`,
		},
		"interrupted": {
			steps(end(event.Interrupted, nil)),
			beginning + `{"type":"error","output":"the turn ended: interrupted","is_error":true}`,
		},
		"removed": {append(steps(
			start("p1", event.KindText, ""), text("p1", event.Text, 0, "Old"),
		), channel.StreamEvent{Snapshot: &transcript.Snapshot{Seq: 9}}), beginning +
			`{"type":"content_block_start","index":0,"content_block":{"type":"text"}}
{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Old"}}
{"type":"content_block_start","index":0,"content_block":{"type":"text"}}
{"type":"content_block_stop","index":0}
{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{}}
{"type":"message_stop"}
{"type":"iteration_stop","iteration":0}
{"type":"iteration_start","iteration":1}
{"type":"message_start","message":{"role":"assistant"}}
{"type":"error","output":"context canceled","is_error":true}`},
		"cut short": {steps(), strings.TrimSpace(beginning)},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(strings.Split(c.want, "\n"), write(t, c.steps...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A status of an earlier iteration that becomes the answer isn't lost: it is written again.
func TestEarlierText(t *testing.T) {
	frames := write(t, steps(
		start("p1", event.KindStatus, ""), text("p1", event.Text, 0, "Wait"),
		start("p2", event.KindTool, event.PartRunning), state("p2", event.PartDone),
		start("p3", event.KindText, ""), text("p3", event.Text, 0, "Almost."),
		replace("p1", event.Text, "42"), end(event.Completed, nil))...)
	if got := buffer(t, frames); got != "42\n\nAlmost." {
		t.Errorf("the text is %q", got)
	}
}

// A step that doesn't follow the one before is an error, and the last value.
func TestGap(t *testing.T) {
	events := make(chan channel.StreamEvent, 10)
	for _, e := range steps(text("p1", event.Text, 5, "x"), end(event.Completed, nil)) {
		events <- e
	}
	close(events)
	var last error
	count := 0
	for _, err := range sdkevents.Events(turn, events) {
		last = err
		count++
	}
	if !errors.Is(last, transcript.ErrGap) || count != 4 {
		t.Errorf("%d values, the last is %v", count, last)
	}
}
