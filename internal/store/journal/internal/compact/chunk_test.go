package compact

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/leat-dev/leat/event"
)

// events generates events, most of them appends that continue the previous one.
func events(t *rapid.T) []event.Event {
	text := rapid.SampledFrom([]string{"", "a", "water ", "line\n", `"quoted"\`, "日本語", "\u2028", "\x00", "\t\r", "</script>"})
	id := rapid.SampledFrom([]string{"", "a", "b"})
	var out []event.Event
	seq := int64(0)
	for range rapid.IntRange(1, 30).Draw(t, "events") {
		seq += int64(rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(t, "gap"))
		e := event.Event{Seq: seq, At: rapid.Int64Range(0, 1<<40).Draw(t, "at")}
		if n := len(out); n > 0 && out[n-1].Op() && rapid.IntRange(0, 4).Draw(t, "goes on") > 0 {
			p := out[n-1]
			e.Type, e.Turn, e.Message, e.Part, e.Field, e.Offset = event.PartAppend, p.Turn, p.Message, p.Part, p.Field, end(&p)
		} else {
			e.Type = rapid.SampledFrom([]event.Type{event.PartAppend, event.PartReplace, event.TurnStart, event.Record}).Draw(t, "type")
			e.Turn, e.Message, e.Part = id.Draw(t, "turn"), id.Draw(t, "message"), id.Draw(t, "part")
			if e.Type == event.PartAppend {
				e.Offset = rapid.Int64Range(0, 20).Draw(t, "offset")
			}
			if e.Type == event.Record {
				e.Body = &event.Body{RecordKind: "k", Conversation: id.Draw(t, "conversation"), Data: json.RawMessage(`{"a":"\n"}`)}
			}
		}
		if e.Op() {
			e.Text = text.Draw(t, "text")
			e.Field = rapid.SampledFrom([]event.Field{e.Field, event.Output}).Draw(t, "field")
			switch rapid.IntRange(0, 12).Draw(t, "extra") {
			case 0:
				e.Note = "note"
			case 1:
				e.History = []string{"x"}
			case 2:
				e.MergedFrom = 1
			case 3:
				e.Partial = true
			case 4:
				e.Offset += int64(rapid.IntRange(0, 1).Draw(t, "shift"))
			}
		}
		if e.Type == event.PartReplace {
			e.Offset = 0
		}
		out = append(out, e)
	}
	return out
}

func TestChunkRoundTrip(t *testing.T) {
	short := 0
	rapid.Check(t, func(t *rapid.T) {
		all := events(t)
		cut := rapid.IntRange(0, len(all)).Draw(t, "cut")
		var b []byte
		for _, part := range [][]event.Event{all[:cut], all[cut:]} { // chunks can be put one behind the other
			var err error
			if b, err = Encode(b, part); err != nil {
				t.Fatal(err)
			}
		}
		after := rapid.Int64Range(0, all[len(all)-1].Seq).Draw(t, "after")
		var want []event.Event
		for _, e := range all {
			if e.Seq > after {
				want = append(want, e)
			}
		}
		got, err := Decode(nil, b, after)
		if err != nil {
			t.Fatalf("%v in\n%s", err, b)
		}
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("after %d (-want +got):\n%s\nfrom\n%s", after, d, b)
		}
		short += strings.Count(string(b), "\n") - strings.Count(string(b), "\n{")
	})
	if short < 200 {
		t.Errorf("only %d lines continue another", short)
	}
}

// TestChunkInvalidText encodes a text that isn't UTF-8 and so grows. The next event must not use the short form, whose offset
// would be wrong.
func TestChunkInvalidText(t *testing.T) {
	all := []event.Event{
		{Seq: 1, Type: event.PartAppend, Message: "m", Part: "p", Text: "a\xff"},
		{Seq: 2, Type: event.PartAppend, Message: "m", Part: "p", Offset: 2, Text: "b"},
	}
	b, err := Encode(nil, all)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(nil, b, 0)
	if err != nil || len(got) != 2 || got[0].Text != "a\ufffd" || got[1].Offset != 2 || got[1].Text != "b" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestChunkCorrupt(t *testing.T) {
	line := `{"seq":1,"type":"part.append","message":"m","part":"p","offset":0,"text":"a"}`
	for _, s := range []string{`5"x"`, `"x"`, line + "\n5", line + "\nx\"y\"", line + "\n5\"x", line + "\n5\"x\"y\"", `{"seq":1}` + "\n" + `5"x"`, "{"} {
		if e, err := Decode(nil, []byte(s), 0); err == nil {
			t.Errorf("%q gives %+v", s, e)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"seq":1,"type":"part.append","message":"m","part":"p","offset":0,"text":"a"}` + "\n" + `5"b\n"` + "\n" + `-7"🌊"`))
	f.Add([]byte(`{"seq":1,"type":"record","kind":"k","data":{"a":1}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		first, err := Decode(nil, b, -1<<63)
		if err != nil {
			return
		}
		again, err := Encode(nil, first)
		if err != nil {
			return // a body that was read may be one that can't be written, such as a number out of range
		}
		second, err := Decode(nil, again, -1<<63)
		if err != nil {
			t.Fatalf("%v in what was written from %q:\n%s", err, b, again)
		}
		third, err := Encode(nil, second)
		if err != nil || string(third) != string(again) {
			t.Fatalf("%q is written as\n%s\nand then, %v, as\n%s", b, again, err, third)
		}
	})
}
