package openaichat

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

func TestRecordings(t *testing.T) {
	all := append(dialecttest.LoadAll(t, Dialect(), "openai-chat/*"), dialecttest.LoadAll(t, Dialect(), "letta-appserver/openai-api/chat-*")...)
	dialecttest.Run(t, Dialect(), all)
	dialecttest.Golden(t, Dialect(), all)
}

func TestConformance(t *testing.T) {
	all := dialecttest.OwnStreams(t, Dialect())
	dialecttest.Run(t, Dialect(), all)
	dialecttest.Golden(t, Dialect(), all)
}

// feed decodes frames, the last of which may be invalid.
func feed(frames ...string) (ops []event.Event, err error) {
	d := Dialect().Decoder()
	for _, f := range frames {
		var got []event.Event
		if got, err = d.Decode(dialect.Frame{Data: []byte(f)}); err != nil {
			return nil, err
		}
		ops = append(ops, got...)
	}
	got, err := d.Close()
	return append(ops, got...), err
}

const said = `{"choices":[{"index":0,"delta":{"content":"x"}}]}`

func TestInvalid(t *testing.T) {
	tools := make([]string, maxTools+1)
	for i := range tools {
		tools[i] = fmt.Sprintf(`{"index":%d,"function":{"name":"f"}}`, i)
	}
	choices := make([]string, maxChoices+1)
	for i := range choices {
		choices[i] = fmt.Sprintf(`{"index":%d}`, i)
	}
	for name, frame := range map[string]string{
		"no object":                   `[]`,
		"text of the wrong type":      `{"choices":[{"index":0,"delta":{"content":5}}]}`,
		"reasoning of the wrong type": `{"choices":[{"index":0,"delta":{"reasoning":{}}}]}`,
		"content list with a number":  `{"choices":[{"index":0,"delta":{"content":[5]}}]}`,
		"arguments of a kind":         `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":7}}]}}]}`,
		"too many tools":              `{"choices":[{"index":0,"delta":{"tool_calls":[` + strings.Join(tools, ",") + `]}}]}`,
		"too many choices":            `{"choices":[` + strings.Join(choices, ",") + `]}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := feed(said, frame)
			var bad *dialect.Error
			if !errors.As(err, &bad) || bad.Frame != 2 || bad.Dialect != "openai-chat" {
				t.Error(err)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	for frame, want := range map[string]event.Error{
		`{"error":{"message":"busy","type":"server_error"}}`:                        {Code: "server_error", Message: "busy", Retryable: true},
		`{"error":{"message":"slow down","code":429}}`:                              {Code: "429", Message: "slow down", Retryable: true},
		`{"error":{"message":"pay","type":"insufficient_quota","status_code":429}}`: {Code: "insufficient_quota", Message: "pay"},
		`{"error":{"code":"context_length_exceeded"}}`:                              {Code: "context_length_exceeded", Message: "context_length_exceeded"},
		`{"error":"out of tokens"}`:                                                 {Message: "out of tokens"},
		`{"error":{}}`:                                                              {Message: "the upstream failed"},
	} {
		ops, err := feed(frame, "[DONE]")
		if err != nil || len(ops) != 1 {
			t.Errorf("%s: %v, %v", frame, ops, err)
			continue
		}
		if diff := cmp.Diff(&want, ops[0].Body.Error); diff != "" || ops[0].Body.Outcome != event.Failed {
			t.Errorf("%s: %s", frame, diff)
		}
	}
}

// The turn has the reason of choice 0, also if that has none.
func TestReasonOfFirstChoice(t *testing.T) {
	other := `{"choices":[{"index":1,"delta":{},"finish_reason":"content_filter"}]}`
	ops, err := feed(`{"choices":[{"index":0,"delta":{"content":"ok"}}]}`, other, "[DONE]")
	if err != nil {
		t.Fatal(err)
	}
	if end := ops[len(ops)-1].Body; end.Outcome != event.Completed || end.Reason != "" {
		t.Errorf("the turn is %s with the reason %q", end.Outcome, end.Reason)
	}
	ops, err = feed(other, "[DONE]")
	if err != nil {
		t.Fatal(err)
	}
	if end := ops[len(ops)-1].Body; end.Outcome != event.Failed || end.Reason != "content_filter" {
		t.Errorf("without choice 0 the turn is %s with the reason %q", end.Outcome, end.Reason)
	}
}

// The decoder reads the encoder's output back.
func TestEncoderIsRead(t *testing.T) {
	e := Encoder{ID: "c", Model: "m", Usage: true}
	b := e.Text(e.Reasoning(e.Start(nil), "why"), "a\n\"é\"")
	s := dialect.NewStream(Dialect())
	ops, err := s.Write(e.End(b, "length", &event.Usage{Input: 3, CacheRead: 2, Output: 1}))
	if err != nil {
		t.Fatal(err)
	}
	want := `turn turn state="ended" outcome="completed" reason="length" usage={"model":"m","input":3,"output":1,"cache_read":2} model="m"
message id1 turn="turn" role="assistant" ended=true stop="length"
  p1 reasoning ended=true text="why"
  p2 text join="\n\n" ended=true text="a\n\"é\""
`
	if diff := cmp.Diff(want, dialecttest.Dump(dialecttest.Fold(t, ops))); diff != "" {
		t.Error(diff)
	}
}

func TestCounts(t *testing.T) {
	s := dialect.NewStream(Dialect())
	if _, err := s.Write([]byte("data: {\"object\":\"x\"}\n\ndata: {\"type\":\"ping\"}\n\ndata: {}\n\n")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(dialect.Unknown{"x": 1, "ping": 1, "": 1}, s.Unknown()); diff != "" {
		t.Error(diff)
	}
}

// However often a server alternates between reasoning and text, the number of parts is limited and no text is lost.
func TestThoughtsAreBounded(t *testing.T) {
	d := Dialect().Decoder()
	parts, said := map[string]bool{}, 0
	for range 2 * maxThoughts {
		ops, err := d.Decode(dialect.Frame{Data: []byte(`{"choices":[{"index":0,"delta":{"reasoning":"r","content":"c"}}]}`)})
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range ops {
			parts[op.Part] = true
			said += len(op.Text)
		}
	}
	if len(parts) > maxThoughts+2 || said != 4*maxThoughts {
		t.Errorf("%d parts, %d bytes", len(parts), said)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range dialecttest.OwnStreams(f, Dialect()) {
		f.Add(s.Body)
	}
	f.Fuzz(func(t *testing.T, body []byte) { dialecttest.Fuzz(t, Dialect(), body) })
}

// Frames are decoded as encoding/json decodes them.
func FuzzWire(f *testing.F) { dialecttest.FuzzWire[chunk](f, Dialect(), "openai-chat/*") }
