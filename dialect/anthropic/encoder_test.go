package anthropic

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// The decoder reads the encoder's output back into the same texts and the same end.
func TestEncoderIsRead(t *testing.T) {
	e := Encoder{ID: "msg_1", Model: "m"}
	b := e.Start(nil)
	ping := func(b []byte, _ string) []byte { return e.Ping(b) }
	for _, write := range []func([]byte, string) []byte{e.Reasoning, e.Reasoning, e.Text, ping, e.Reasoning, e.Text} {
		b = write(b, "a\n\"é\" ")
	}
	b = e.End(b, "length", &event.Usage{Input: 3, Output: 2})
	var names []string
	for line := range strings.Lines(string(b)) {
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			names = append(names, strings.TrimSpace(name))
		}
	}
	const start, delta, stop = "content_block_start", "content_block_delta", "content_block_stop"
	want := []string{"message_start", start, delta, delta, stop, start, delta, "ping", stop, start, delta, stop, start, delta, stop, "message_delta", "message_stop"}
	if d := cmp.Diff(want, names); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	stream := dialect.NewStream(Dialect())
	ops, err := stream.Write(b)
	if err != nil {
		t.Fatal(err)
	}
	text := map[event.PartKind]string{}
	var end *event.Body
	kinds := map[string]event.PartKind{}
	for _, op := range ops {
		switch op.Type {
		case event.PartStart:
			kinds[op.Part] = op.Body.Kind
		case event.PartAppend:
			text[kinds[op.Part]] += op.Text
		case event.TurnEnd:
			end = op.Body
		}
	}
	if d := cmp.Diff(map[event.PartKind]string{"text": "a\n\"é\" a\n\"é\" ", "reasoning": "a\n\"é\" a\n\"é\" a\n\"é\" "}, text); d != "" {
		t.Errorf("texts (-want +got):\n%s", d)
	}
	if end == nil || end.Outcome != event.Completed || end.Reason != event.ReasonLength || end.Usage.Input != 3 || end.Usage.Output != 2 {
		t.Errorf("end %+v", end)
	}
}

func TestEncoderFails(t *testing.T) {
	e := Encoder{ID: "msg_1", Model: "m"}
	b := e.Fail(e.Text(e.Start(nil), "so far"), "overloaded_error", "busy")
	if strings.Contains(string(b), "message_stop") {
		t.Errorf("a failed message has the end of a complete one: %s", b)
	}
	stream := dialect.NewStream(Dialect())
	ops, err := stream.Write(b)
	if err != nil {
		t.Fatal(err)
	}
	last := ops[len(ops)-1]
	if last.Type != event.TurnEnd || last.Body.Outcome != event.Failed || last.Body.Error.Code != "overloaded_error" || last.Body.Error.Message != "busy" {
		t.Errorf("end %+v", last)
	}
}

// The exact bytes of an error, in a stream and in a single response.
func TestErrorBytes(t *testing.T) {
	e := Encoder{ID: "msg_1", Model: "m"}
	const event = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"server_error\",\"message\":\"Agent is not running\"}}\n\n"
	if got := string(e.Fail(nil, "server_error", "Agent is not running")); got != event {
		t.Errorf("got %q\nwant %q", got, event)
	}
	const answer = `{"type":"error","error":{"type":"service_unavailable","message":"Agent is not running"},"request_id":"r-1"}`
	if got := string(AppendError(nil, "service_unavailable", "Agent is not running", "r-1")); got != answer {
		t.Errorf("got %s\nwant %s", got, answer)
	}
}

func TestEncoderSaysNothing(t *testing.T) {
	e := Encoder{ID: "msg_1", Model: "m"}
	if b := string(e.End(e.Start(nil), "", nil)); !strings.Contains(b, `"index":0,"content_block":{"type":"text","text":""}`) {
		t.Errorf("no empty text: %s", b)
	}
	if b := string(e.AppendMessage(nil, nil, "", nil)); !strings.Contains(b, `"content":[{"type":"text","text":""}]`) {
		t.Errorf("no empty text: %s", b)
	}
}
