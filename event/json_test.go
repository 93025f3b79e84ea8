package event_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/leat-dev/leat/event"
)

func TestExampleOfTheDesign(t *testing.T) {
	const line = `{"seq":12,"at":1795194262752,"turn":"0198","type":"part.append","message":"0199","part":"p2","offset":14,"text":" world"}`
	var e event.Event
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		t.Fatal(err)
	}
	want := event.Event{Seq: 12, At: 1795194262752, Turn: "0198", Type: event.PartAppend, Message: "0199", Part: "p2", Offset: 14, Text: " world"}
	if d := cmp.Diff(want, e); d != "" {
		t.Fatal(d)
	}
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	if string(b) != line {
		t.Fatalf("got  %s\nwant %s", b, line)
	}
}

// One event of each type, with every field that it can have.
func full() []event.Event {
	title := "T"
	return []event.Event{
		{Seq: 1, At: 5, Type: event.MessageAdd, Message: "m1", Body: &event.Body{
			Role: event.User, Author: &event.Author{ID: "a", Name: "A"}, Source: "native",
			Parts: []event.Part{{Kind: event.KindText, Text: "hi <b>&"}, {ID: "x", Kind: event.KindMedia, Media: &event.Media{URL: "u", MIME: "image/png", Name: "n", Size: 3, Alt: "alt"}}},
		}},
		{Seq: 2, Turn: "t", Type: event.TurnStart, Body: &event.Body{Agent: "demo", Answers: "m1", Parent: "p"}},
		{Seq: 3, Turn: "t", Type: event.MessageUpdate, Message: "m1", Body: &event.Body{MessageState: event.MessageStarted}},
		{Seq: 4, Turn: "t", Type: event.MessageStart, Message: "m2", Body: &event.Body{Role: event.Assistant}},
		{Seq: 5, Turn: "t", Type: event.PartStart, Message: "m2", Part: "p1", Body: &event.Body{Kind: event.KindText, Join: event.JoinBlank, MediaType: "text/markdown"}},
		{Seq: 9, MergedFrom: 6, Turn: "t", Type: event.PartReplace, Message: "m2", Part: "p1", Text: "a\"\\\n\x00\u2028é👍", History: []string{"x", "y\n"}},
		{Seq: 10, Turn: "t", Type: event.PartAppend, Message: "m2", Part: "p1", Field: event.Stderr, Text: "z", Note: "n", Partial: true},
		{Seq: 11, Turn: "t", Type: event.PartUpdate, Message: "m2", Part: "p1", Body: &event.Body{State: event.PartFailed, Title: &title, Error: &event.Error{Code: "c", Message: "m", Retryable: true}}},
		{Seq: 12, Turn: "t", Type: event.PartEnd, Message: "m2", Part: "p1", Body: &event.Body{Sums: map[string]event.Sum{"text": {Length: 3, CRC: 7}}}},
		{Seq: 13, Turn: "t", Type: event.TurnUpdate, Body: &event.Body{Phase: "p", Step: 2, Model: "m", Upstream: &event.Upstream{Run: "r", Cursor: "c"}}},
		{Seq: 14, Turn: "t", Type: event.TurnWait, Body: &event.Body{Request: &event.Request{ID: "r", Kind: event.RequestApproval, Tool: "exec", Options: []string{"a"}, Data: json.RawMessage(`{"x":1}`)}}},
		{Seq: 15, Turn: "t", Type: event.TurnResume, Body: &event.Body{Answer: &event.Answer{ID: "r", Decision: event.Approve, Text: "t", Subject: "me"}}},
		{Seq: 16, Turn: "t", Type: event.MessageEnd, Message: "m2", Body: &event.Body{Reason: "stop"}},
		{Seq: 17, Turn: "t", Type: event.TurnEnd, Body: &event.Body{Outcome: event.Completed, Usage: &event.Usage{Model: "m", Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 5, Cost: .5}}},
		{Seq: 18, Type: event.ConversationUpdate, Body: &event.Body{Title: &title, Metadata: map[string]json.RawMessage{"k": json.RawMessage(`null`)}}},
		{Seq: 19, Type: event.ConversationTruncate, Message: "m1"},
		{Seq: 20, Type: event.ConversationDelete},
		{Seq: 21, Type: event.Record, Body: &event.Body{RecordKind: "agent_event", Conversation: "c", Data: json.RawMessage(`{"a":[1]}`)}},
	}
}

func TestEveryTypeRoundTrips(t *testing.T) {
	for _, e := range full() {
		if err := e.Validate(); err != nil {
			t.Errorf("%s: %v", e.Type, err)
		}
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatalf("%s: %v", e.Type, err)
		}
		var got event.Event
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("%s: %v: %s", e.Type, err, b)
		}
		if d := cmp.Diff(e, got, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: %s", e.Type, d)
		}
	}
}

// encoding/json reads the output of AppendJSON, and the fast reader agrees with encoding/json.
func TestHandWrittenJSONAgreesWithTheStandardLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := event.Event{
			Seq: rapid.Int64Range(0, 1<<53).Draw(t, "seq"), At: rapid.Int64Range(0, 1<<53).Draw(t, "at"),
			Turn: rapid.String().Draw(t, "turn"), Type: event.PartAppend, Message: rapid.String().Draw(t, "message"), Part: rapid.String().Draw(t, "part"),
			Offset: rapid.Int64Range(0, 1<<40).Draw(t, "offset"),
			Text:   rapid.OneOf(rapid.String(), rapid.StringMatching(`[\x00-\x7f]{0,40}`), rapid.StringMatching(`["\\\nab]{0,20}`)).Draw(t, "text"),
		}
		b, err := e.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		var plain struct {
			Seq, At, Offset                 int64
			Turn, Type, Message, Part, Text string
		}
		if err := json.Unmarshal(b, &plain); err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		if plain.Text != e.Text || plain.Turn != e.Turn || plain.Offset != e.Offset || plain.Seq != e.Seq || plain.At != e.At || plain.Message != e.Message || plain.Part != e.Part {
			t.Fatalf("standard library reads %+v from %s", plain, b)
		}
		var got event.Event
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(e, got); d != "" {
			t.Fatal(d)
		}
	})
}

// The keys "state" and "kind" have different Go types in different events, but the same names in JSON.
func TestSharedKeys(t *testing.T) {
	for line, want := range map[string]event.Body{
		`{"seq":1,"type":"message.update","message":"m","state":"queued"}`:         {MessageState: event.MessageQueued},
		`{"seq":1,"type":"part.update","message":"m","part":"p","state":"denied"}`: {State: event.PartDenied},
		`{"seq":1,"type":"part.start","message":"m","part":"p","kind":"tool"}`:     {Kind: event.KindTool},
		`{"seq":1,"type":"record","kind":"send"}`:                                  {RecordKind: "send"},
	} {
		var e event.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, *e.Body); d != "" {
			t.Errorf("%s (-want +got):\n%s", line, d)
		}
		body := *e.Body
		b, err := e.AppendJSON(nil)
		if err != nil || string(b) != line {
			t.Errorf("got %s, %v, want %s", b, err, line)
		}
		if d := cmp.Diff(body, *e.Body); d != "" {
			t.Errorf("encoding %s changed its body:\n%s", line, d)
		}
	}
}

func TestInvalidUTF8IsReplacedNotPassedOn(t *testing.T) {
	e := event.Event{Type: event.PartAppend, Message: "m", Part: "p", Text: "a\xff\xc3b"}
	b, err := e.AppendJSON(nil)
	if err != nil || !utf8.Valid(b) {
		t.Fatalf("%v %q", err, b)
	}
	var got event.Event
	if err := json.Unmarshal(b, &got); err != nil || got.Text != "a\ufffd\ufffdb" {
		t.Fatalf("%v %q", err, got.Text)
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, e := range full() {
		b, _ := json.Marshal(e)
		f.Add(string(b))
	}
	f.Add(`{"type":"part.append","offset":1e3}`)
	f.Add(`{"__proto__":{"a":1},"type":"turn.end"}`)
	f.Fuzz(func(t *testing.T, s string) {
		var e event.Event
		if json.Unmarshal([]byte(s), &e) != nil || e.Validate() != nil {
			return
		}
		b, err := e.AppendJSON(nil)
		if err != nil {
			t.Fatalf("valid event does not encode: %v", err)
		}
		var again event.Event
		if err := json.Unmarshal(b, &again); err != nil {
			t.Fatalf("own JSON does not decode: %v: %s", err, b)
		}
		if c, err := again.AppendJSON(nil); err != nil || string(c) != string(b) {
			t.Fatalf("not stable: %s\n%s %v", b, c, err)
		}
	})
}

func TestValidateNamesWhatIsWrong(t *testing.T) {
	long := strings.Repeat("x", event.MaxID+1)
	for name, c := range map[string]struct {
		e    event.Event
		want string
	}{
		"unknown type":   {event.Event{Type: "x"}, `"x" is unknown`},
		"no message":     {event.Event{Type: event.MessageEnd}, "message is missing"},
		"no part":        {event.Event{Type: event.PartEnd, Message: "m"}, "part is missing"},
		"bad role":       {event.Event{Type: event.MessageStart, Message: "m"}, "role"},
		"bad kind":       {event.Event{Type: event.PartStart, Message: "m", Part: "p", Body: &event.Body{Kind: "x"}}, "kind"},
		"bad join":       {event.Event{Type: event.PartStart, Message: "m", Part: "p", Body: &event.Body{Kind: "text", Join: " "}}, "join"},
		"bad field":      {event.Event{Type: event.PartAppend, Message: "m", Part: "p", Field: "x"}, "field"},
		"bad offset":     {event.Event{Type: event.PartAppend, Message: "m", Part: "p", Offset: -1}, "offset"},
		"bad state":      {event.Event{Type: event.PartUpdate, Message: "m", Part: "p", Body: &event.Body{State: "x"}}, "state"},
		"bad outcome":    {event.Event{Type: event.TurnEnd, Body: &event.Body{Outcome: "x"}}, "outcome"},
		"no request":     {event.Event{Type: event.TurnWait}, "request is missing"},
		"no answer":      {event.Event{Type: event.TurnResume}, "answer is missing"},
		"no record kind": {event.Event{Type: event.Record}, "kind is missing"},
		"long id":        {event.Event{Type: event.TurnEnd, Turn: long}, "turn of 257 bytes"},
		"control":        {event.Event{Type: event.TurnEnd, Turn: "a\x00"}, "control character"},
		"not UTF-8":      {event.Event{Type: event.TurnEnd, Turn: "a\xff"}, "UTF-8"},
		"long text":      {event.Event{Type: event.PartAppend, Message: "m", Part: "p", Text: strings.Repeat("x", event.MaxText+1)}, "text of"},
	} {
		err := c.e.Validate()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q in it", name, err, c.want)
		}
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	e := full()[5]
	e.History, e.Type, e.Text = nil, event.PartAppend, " some token of an answer"
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = e.AppendJSON(buf[:0])
	}
}

func BenchmarkUnmarshal(b *testing.B) {
	e := event.Event{Seq: 9, At: 1795194262752, Turn: "01980000-0000-7000-8000-000000000000", Type: event.PartAppend, Message: "01980000-0000-7000-8000-000000000001", Part: "p1", Offset: 1234, Text: " some token of an answer"}
	s, _ := e.AppendJSON(nil)
	b.ReportAllocs()
	for b.Loop() {
		if err := e.UnmarshalJSON(s); err != nil {
			b.Fatal(err)
		}
	}
}

// AppendString looks at eight bytes at once. It must agree with itself for one character at a time, wherever the character is.
func TestAppendStringAtEveryPosition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOf(rapid.OneOf(
			rapid.SampledFrom([]string{"\"", "\\", "\n", "\x00", "\x1f", " ", "~", "\x7f", "\x80", "\xff", "é", "網", "\u2028", "👍", "!", "#", "[", "]"}),
			rapid.StringMatching(`[ -~]{0,12}`),
		)).Draw(t, "pieces")
		want := []byte{'"'}
		s := strings.Join(pieces, "")
		for i := 0; i < len(s); {
			_, n := utf8.DecodeRuneInString(s[i:])
			c := event.AppendString(nil, s[i:i+n])
			want = append(want, c[1:len(c)-1]...)
			i += n
		}
		want = append(want, '"')
		if got := event.AppendString(nil, s); string(got) != string(want) {
			t.Fatalf("%q: got %s, want %s", s, got, want)
		}
	})
}

func BenchmarkAppendString(b *testing.B) {
	for name, s := range map[string]string{
		"english": strings.Repeat("The gateway writes most of its text in \"one\" piece, whatever it says.\n", 1000),
		"chinese": strings.Repeat("网关写出的大部分内容都是文本。\n", 1500),
	} {
		b.Run(name, func(b *testing.B) {
			buf := make([]byte, 0, 2*len(s))
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				buf = event.AppendString(buf[:0], s)
			}
		})
	}
}
