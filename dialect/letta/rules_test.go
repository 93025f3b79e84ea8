package letta

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/dialecttest"
	"github.com/leat-dev/leat/event"
)

// play decodes frames and returns the transcript. A string that isn't a JSON object is used as the data of a frame unchanged.
func play(t *testing.T, d *Decoder, frames ...string) string {
	t.Helper()
	f := dialecttest.NewFolder()
	fold(t, f, d, frames...)
	return dialecttest.Dump(&f.Transcript)
}

func fold(t *testing.T, f *dialecttest.Folder, d *Decoder, frames ...string) {
	t.Helper()
	for i, data := range frames {
		fr := dialect.Frame{Data: []byte(data)}
		if name, rest, ok := strings.Cut(data, "|"); ok && !strings.HasPrefix(data, "{") {
			fr = dialect.Frame{Event: name, Data: []byte(rest)}
		}
		ops, err := d.Decode(fr)
		if err != nil {
			t.Fatalf("frame %d: %v", i+1, err)
		}
		if err := f.Fold(ops); err != nil {
			t.Fatalf("frame %d: %v", i+1, err)
		}
	}
}

func say(id, otid, text string, seq int) string {
	return fmt.Sprintf(`{"message_type":"assistant_message","id":%q,"otid":%q,"content":%q,"run_id":"r1","step_id":"s1","seq_id":%d}`, id, otid, text, seq)
}

const (
	stop    = `{"message_type":"stop_reason","stop_reason":"end_turn"}`
	counted = `{"message_type":"usage_statistics","prompt_tokens":20,"completion_tokens":10,"cached_input_tokens":4}`
)

func TestRules(t *testing.T) {
	const head = `turn turn state="ended" outcome="completed" reason="end_turn" usage={"input":16,"output":10,"cache_read":4} upstream={"run":"r1"}` + "\n"
	for name, c := range map[string]struct {
		frames []string
		want   string
	}{
		"ids in mixed order are one part": {
			[]string{say("a", "", "1", 1), say("a", "x", "2", 2), say("", "x", "3", 3), counted, stop},
			head + `message id1 turn="turn" role="assistant" ended=true stop="end_turn"` + "\n" + `  p1 text join="\n\n" ended=true text="123"` + "\n",
		},
		"adjacent texts are joined without a blank line": {
			[]string{say("a", "", "1", 1), say("b", "", "2", 2), counted, stop},
			head + `message id1 turn="turn" role="assistant" ended=true stop="end_turn"` + "\n" + `  p1 text join="\n\n" ended=true text="1"` + "\n" + `  p2 text ended=true text="2"` + "\n",
		},
		"a repetition changes nothing": {
			[]string{say("a", "x", "1", 1), say("a", "x", "2", 2), say("a", "x", "2", 2), say("a", "x", "1", 1), counted, stop},
			head + `message id1 turn="turn" role="assistant" ended=true stop="end_turn"` + "\n" + `  p1 text join="\n\n" ended=true text="12"` + "\n",
		},
		"a complete text with a low seq completes a broken one": {
			[]string{say("a", "x", "One ", 7), say("a", "x", "One two three", 3), counted, stop},
			head + `message id1 turn="turn" role="assistant" ended=true stop="end_turn"` + "\n" + `  p1 text join="\n\n" ended=true text="One two three"` + "\n",
		},
		"characters that are split": {
			[]string{
				`{"message_type":"assistant_message","otid":"x","content":"a\ud83d","run_id":"r1","step_id":"s1"}`,
				`{"message_type":"assistant_message","otid":"x","content":[{"type":"text","text":"\ude00b"}],"run_id":"r1","step_id":"s1"}`, counted, stop,
			},
			head + `message id1 turn="turn" role="assistant" ended=true stop="end_turn"` + "\n" + `  p1 text join="\n\n" ended=true text="a😀b"` + "\n",
		},
		"steps: complete messages, calls as a list": {
			[]string{
				`{"message_type":"tool_call_message","id":"m","otid":"x","tool_call":{"name":"f","arguments":"{\"a\":1}","tool_call_id":"c1"},"tool_calls":[{"name":"f","arguments":"{\"a\":1}","tool_call_id":"c1"},{"name":"g","arguments":"{}","tool_call_id":"c2"}],"run_id":"r1","step_id":"s1"}`,
				`{"message_type":"tool_return_message","id":"m2","tool_returns":[{"tool_call_id":"c2","status":"error","func_response":"no","stderr":["bad","luck"]},{"tool_call_id":"c1","status":"success","tool_return":"yes","stdout":["printed"]}],"run_id":"r1","step_id":"s1"}`,
				stop, counted,
			},
			head + `message id1 turn="turn" role="assistant" ended=true stop="end_turn"` + "\n" +
				`  p1 tool name="f" call="c1" state="done" ended=true input="{\"a\":1}" output="printed\nyes"` + "\n" +
				`  p2 tool name="g" call="c2" state="failed" error={"message":"the tool failed"} ended=true input="{}" output="no" stderr="bad\nluck"` + "\n",
		},
		"no usage": {
			[]string{say("a", "x", "1", 1), stop, "[DONE]", "[DONE]"},
			`turn turn state="ended" outcome="completed" reason="end_turn" upstream={"run":"r1"}` + "\n" +
				`message id1 turn="turn" role="assistant" ended=true stop="end_turn"` + "\n" + `  p1 text join="\n\n" ended=true text="1"` + "\n",
		},
		"cancelled": {
			[]string{say("a", "x", "1", 1), `{"message_type":"stop_reason","stop_reason":"cancelled"}`, "[DONE]"},
			`turn turn state="ended" outcome="cancelled" reason="cancelled" upstream={"run":"r1"}` + "\n" +
				`message id1 turn="turn" role="assistant" ended=true stop="cancelled"` + "\n" + `  p1 text join="\n\n" ended=true text="1"` + "\n",
		},
		"cancelled, as an event": {
			[]string{`cancelled|{"message":"Run was cancelled"}`},
			`turn turn state="ended" outcome="cancelled" reason="cancelled"` + "\n",
		},
		"an error without a stop reason": {
			[]string{say("a", "x", "1", 1), `error|{"error":"boom","code":"INTERNAL_SERVER_ERROR"}`},
			`turn turn state="ended" outcome="failed" reason="error" error={"code":"INTERNAL_SERVER_ERROR","message":"boom","retryable":true} upstream={"run":"r1"}` + "\n" +
				`message id1 turn="turn" role="assistant" ended=true stop="error"` + "\n" + `  p1 text join="\n\n" ended=true text="1"` + "\n",
		},
		"an unknown stop reason is a failure": {
			[]string{`{"message_type":"stop_reason","stop_reason":"moon_phase"}`, "[DONE]"},
			`turn turn state="ended" outcome="failed" reason="moon_phase" error={"code":"moon_phase","message":"the turn ended with the stop reason moon_phase"}` + "\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, play(t, New(), c.frames...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// After an approval the turn continues in another stream, which the same decoder reads.
func TestApprovalContinuesTurn(t *testing.T) {
	d, f := New(), dialecttest.NewFolder()
	fold(t, f, d,
		`{"message_type":"approval_request_message","id":"m-1","otid":"x","tool_call":{"name":"Bash","tool_call_id":"c1"},"run_id":"r1","step_id":"s1","seq_id":1}`,
		`{"message_type":"approval_request_message","id":"m-1","otid":"x","tool_call":{"name":"Bash","arguments":"{}","tool_call_id":"c1"},"run_id":"r1","step_id":"s1","seq_id":2}`,
		`{"message_type":"stop_reason","stop_reason":"requires_approval"}`, counted, "[DONE]")
	if got := f.Transcript.Turns[0]; got.State != "waiting" || len(got.Requests) != 1 || got.Requests[0].Part != "p1" {
		t.Fatalf("the turn is %+v", got)
	}
	if diff := cmp.Diff([]Approval{{Request: "c1", Call: "c1", Tool: "Bash", Origin: "m-1"}}, d.PendingApprovals()); diff != "" {
		t.Fatal(diff)
	}
	if err := f.Fold(d.RecordAnswer("c1", false)); err != nil {
		t.Fatal(err)
	}
	if p := f.Transcript.Messages[0].Parts[0]; p.State != event.PartDenied {
		t.Errorf("the call that was denied is %q", p.State)
	}
	d.ContinueTurn()
	fold(t, f, d,
		`{"message_type":"tool_return_message","id":"m3","tool_call_id":"c1","status":"error","tool_return":"denied","run_id":"r2","step_id":"s1","seq_id":1}`,
		`{"message_type":"assistant_message","otid":"y","content":"Well.","run_id":"r2","step_id":"s2","seq_id":2}`, stop, counted, "[DONE]")
	const want = `turn turn state="ended" outcome="completed" reason="end_turn" usage={"input":32,"output":20,"cache_read":8} upstream={"run":"r2"} requests=[{"id":"c1","kind":"approval","tool":"Bash","part":"p1","at":1000005}]
message id1 turn="turn" role="assistant" ended=true
  p1 tool name="Bash" call="c1" state="denied" ended=true input="{}" output="denied"
message id2 turn="turn" role="assistant" ended=true stop="end_turn"
  p1 text join="\n\n" ended=true text="Well."
`
	got := dialecttest.Dump(&f.Transcript)
	if diff := cmp.Diff(strings.Replace(want, ` requests=[{"id":"c1","kind":"approval","tool":"Bash","part":"p1","at":1000005}]`, "", 1), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := d.Close(); err != nil {
		t.Error(err)
	}
}

func delta(id, text string, seq int) string {
	return fmt.Sprintf(`{"type":"stream_delta","delta":{"message_type":"assistant_message","id":%q,"content":[{"type":"text","text":%q}],"run_id":"r1","seq_id":%d}}`, id, text, seq)
}

func past(messages ...string) string {
	return `{"type":"conversation_messages_list_response","success":true,"messages":[` + strings.Join(messages, ",") + `]}`
}

func past1(typ, id, text string) string {
	if typ == "reasoning_message" {
		return fmt.Sprintf(`{"message_type":%q,"id":%q,"reasoning":%q}`, typ, id, text)
	}
	return fmt.Sprintf(`{"message_type":%q,"id":%q,"content":[{"type":"text","text":%q}]}`, typ, id, text)
}

const active = `{"type":"update_loop_status","loop_status":{"status":"PROCESSING_API_RESPONSE","active_run_ids":["r1"]}}`

// TestHistory repairs a turn whose connection was lost.
func TestHistory(t *testing.T) {
	user := past1("user_message", "ui-1", "please")
	old := past1("assistant_message", "ui-0", "Before.")
	for name, c := range map[string]struct {
		before, after []string
		want          string
	}{
		"missing text is added": {
			[]string{delta("ui-2", "One ", 1)},
			[]string{past(past1("assistant_message", "ui-2", "One two "), user, old), delta("ui-2", "three", 3)},
			"One two three",
		},
		"shorter text is ignored": {
			[]string{delta("ui-2", "One two ", 1)},
			[]string{past(past1("assistant_message", "ui-2", "One"), user, old), delta("ui-2", "three", 3)},
			"One two three",
		},
		"different text is ignored": {
			[]string{delta("ui-2", "One two ", 1)},
			[]string{past(past1("assistant_message", "ui-2", "Something else that is longer"), user, old), delta("ui-2", "three", 3)},
			"One two three",
		},
		"a list without the turn": {
			[]string{delta("ui-2", "One ", 1)},
			[]string{past(past1("assistant_message", "ui-9", "mix "), user, old), delta("ui-2", "two", 3)},
			"One two",
		},
		"a step without any frame": {
			[]string{delta("ui-2", "One ", 1)},
			[]string{past(past1("assistant_message", "ui-4:assistant:1", "Two"), past1("reasoning_message", "ui-4:reasoning:0", "Hm"), past1("assistant_message", "ui-2", "One "), user, old), delta("ui-4:assistant:1", " three", 3)},
			"One \n\nTwo three",
		},
		"a text that a call has followed since": { // its id in the history differs
			[]string{delta("ui-2", "One ", 1)},
			[]string{past(past1("assistant_message", "ui-4", "Three."), past1("assistant_message", "ui-2:assistant:0", "One two."), user, old)},
			"One two.\n\nThree.",
		},
		"a viewer that joins": {
			nil,
			[]string{active, past(past1("assistant_message", "ui-2", "One two "), user, old), delta("ui-2", "three", 3)},
			"One two three",
		},
		"a viewer that joins while no turn runs": {
			nil, []string{past(past1("assistant_message", "ui-2", "One two "), user, old)}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, f := NewCode(), dialecttest.NewFolder()
			fold(t, f, d, c.before...)
			st, err := d.State()
			if err != nil {
				t.Fatal(err)
			}
			d = NewCode()
			if err := d.Restore(st); err != nil {
				t.Fatal(err)
			}
			fold(t, f, d, c.after...)
			if got := dialecttest.Visible(&f.Transcript); got != c.want {
				t.Errorf("visible %q, want %q", got, c.want)
			}
		})
	}
}

// A request that another viewer has answered is closed by its tool's start or end; one that was answered here isn't closed twice.
func TestRequestsAreClosedOnce(t *testing.T) {
	const (
		call    = `{"type":"stream_delta","delta":{"message_type":"approval_request_message","id":"m","tool_call":{"tool_call_id":"c1","name":"Bash","arguments":"{\"a\":1}"},"run_id":"r1","seq_id":1}}`
		request = `{"type":"control_request","request_id":"perm-c1","request":{"subtype":"can_use_tool","tool_name":"Bash","tool_call_id":"c1"}}`
		start   = `{"type":"stream_delta","delta":{"message_type":"client_tool_start","run_id":"r1","tool_call_id":"c1","tool_args":"{\"a\":2}"}}`
		failed  = `{"type":"stream_delta","delta":{"message_type":"client_tool_end","run_id":"r1","tool_call_id":"c1","status":"error"}}`
	)
	for name, c := range map[string]struct {
		here   bool
		then   string
		answer *event.Answer
		input  string
	}{
		"allowed by another viewer": {false, start, &event.Answer{ID: "perm-c1", Decision: event.Approve}, `{"a":2}`},
		"denied by another viewer":  {false, failed, &event.Answer{ID: "perm-c1", Decision: event.Deny}, ""},
		"allowed here":              {true, start, nil, `{"a":2}`},
	} {
		t.Run(name, func(t *testing.T) {
			d := NewCode()
			waits := 0
			var answer *event.Answer
			input := ""
			step := func(frame string) {
				ops, err := d.Decode(dialect.Frame{Data: []byte(frame)})
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range ops {
					switch e.Type {
					case event.TurnWait:
						waits++
					case event.TurnResume:
						answer = e.Body.Answer
					case event.PartReplace:
						input = e.Text
					}
				}
			}
			step(call)
			step(request)
			step(request)
			if c.here {
				d.RecordAnswer("perm-c1", true)
			}
			step(c.then)
			step(request) // a late repetition
			if diff := cmp.Diff(c.answer, answer); diff != "" || waits != 1 || input != c.input {
				t.Errorf("%d waits, input %q, answer (-want +got):\n%s", waits, input, diff)
			}
		})
	}
}

func TestSubagentsAreDropped(t *testing.T) {
	d := NewCode()
	sub := strings.Replace(delta("ui-9", "inside", 2), `"type":"stream_delta"`, `"type":"stream_delta","subagent_id":"s"`, 1)
	f := dialecttest.NewFolder()
	fold(t, f, d, delta("ui-2", "Out", 1), sub, delta("ui-2", "side", 2))
	if got := dialecttest.Visible(&f.Transcript); got != "Outside" {
		t.Errorf("visible %q", got)
	}
}

// The state stays bounded, however much an upstream sends.
func TestBounds(t *testing.T) {
	d := New()
	var err error
	for i := 0; i < 2*maxParts && err == nil; i++ {
		_, err = d.Decode(dialect.Frame{Data: fmt.Appendf(nil, `{"message_type":"tool_call_message","tool_call":{"tool_call_id":"c%d","name":"f"},"run_id":"r"}`, i)})
	}
	var bad *dialect.Error
	if !errors.As(err, &bad) || !errors.Is(err, errParts) {
		t.Errorf("endless calls: %v", err)
	}
	d = NewCode()
	for i := range 5000 {
		if _, err := d.Decode(dialect.Frame{Data: fmt.Appendf(nil, `{"type":"stream_delta","delta":{"message_type":"assistant_message","id":"m%d","content":"x","run_id":"r%d","seq_id":1}}`, i, i)}); err != nil {
			t.Fatal(err)
		}
	}
	st, err := d.State()
	if err != nil || len(st) > 4<<10 {
		t.Errorf("after 5000 runs the state has %d bytes, %v", len(st), err)
	}
}

func TestLongNames(t *testing.T) {
	long := strings.Repeat("x", event.MaxID+1)
	for name, frame := range map[string]string{
		"run":  `{"message_type":"assistant_message","content":"a","run_id":"` + long + `"}`,
		"call": `{"message_type":"tool_call_message","tool_call":{"tool_call_id":"` + long + `"},"run_id":"r"}`,
		"tool": `{"message_type":"tool_call_message","tool_call":{"tool_call_id":"c","name":"` + long + `"},"run_id":"r"}`,
	} {
		if _, err := New().Decode(dialect.Frame{Data: []byte(frame)}); !errors.Is(err, errLong) {
			t.Errorf("%s: %v", name, err)
		}
	}
	d := New()
	ops, err := d.Decode(dialect.Frame{Event: "error", Data: []byte(`{"message_type":"error_message","error_type":"llm_error","message":"` + strings.Repeat("é", 1<<20) + `"}`)})
	if err != nil || len(ops[0].Body.Error.Message) > maxMessage+len("…") {
		t.Errorf("a long message: %v", err)
	}
}

func TestBufferedTextIsEmittedAtEnd(t *testing.T) {
	d := New()
	f := dialecttest.NewFolder()
	fold(t, f, d, `{"message_type":"assistant_message","otid":"x","content":"a\ud83d","run_id":"r1"}`)
	ops, err := d.Close()
	if !errors.Is(err, dialect.ErrCutShort) {
		t.Errorf("Close: %v", err)
	}
	if err := f.Fold(ops); err != nil {
		t.Fatal(err)
	}
	if got := dialecttest.Visible(&f.Transcript); got != "a\ufffd" {
		t.Errorf("visible %q", got)
	}
}

func FuzzV1(f *testing.F) {
	f.Add([]byte("data: " + say("a", "x", "1", 1) + "\n\ndata: " + stop + "\n\ndata: " + counted + "\n\ndata: [DONE]\n\n"))
	f.Add([]byte("data: {\"message_type\":\"approval_request_message\",\"tool_calls\":[{\"tool_call_id\":\"c\",\"arguments\":{}}]}\n\ndata: {\"message_type\":\"stop_reason\",\"stop_reason\":\"requires_approval\"}\n\n"))
	f.Add([]byte("event: error\ndata: {\"error\":\"x\"}\n\n"))
	f.Fuzz(func(t *testing.T, body []byte) { dialecttest.Fuzz(t, Dialect(), body) })
}

func FuzzCode(f *testing.F) {
	f.Add([]byte(delta("a", "1", 1) + "\n" + active + "\n" + past(past1("assistant_message", "a", "12")) + "\n" + `{"type":"turn_finished","run_id":"r1","stop_reason":"end_turn"}` + "\n"))
	f.Add([]byte(`{"type":"control_request","request_id":"p","request":{"subtype":"can_use_tool","tool_call_id":"c"}}` + "\n" + `{"type":"stream_delta","delta":{"message_type":"client_tool_end","tool_call_id":"c","status":"error"}}`))
	f.Add([]byte(`{"type":"message","message_type":"retry","run_id":"r"}` + "\n" + `{"type":"result","subtype":"success"}`))
	f.Fuzz(func(t *testing.T, body []byte) { dialecttest.Fuzz(t, Code(), body) })
}

// Messages of the V1 API are decoded as encoding/json decodes them.
func FuzzWireV1(f *testing.F) { dialecttest.FuzzWire[message](f, Dialect(), "letta-v1/*") }

// Frames of Letta Code are decoded as encoding/json decodes them.
func FuzzWireCode(f *testing.F) {
	dialecttest.FuzzWire[frame](f, Code(), "letta-appserver/0.32.18/*", "letta-appserver/headless/*")
}

// Messages of the headless mode are decoded as encoding/json decodes them.
func FuzzWireMessage(f *testing.F) {
	dialecttest.FuzzWire[message](f, Code(), "letta-appserver/headless/*")
}
