package compact

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/leat-dev/leat/event"
)

// TestMergeReadsOnlyWhatItTouches checks which events require the compacted part to be read and rewritten.
func TestMergeReadsOnlyWhatItTouches(t *testing.T) {
	start := event.Event{Type: event.MessageStart, Turn: "t", Message: "new", Body: &event.Body{Role: event.Assistant}}
	for name, c := range map[string]struct {
		live []event.Event
		want bool
	}{
		"a turn": {[]event.Event{
			{Type: event.TurnStart, Turn: "t"},
			start,
			{Type: event.PartStart, Turn: "t", Message: "new", Part: "p", Body: &event.Body{Kind: event.KindText}},
			{Type: event.PartAppend, Turn: "t", Message: "new", Part: "p", Text: "a"},
			{Type: event.PartAppend, Turn: "t", Message: "new", Part: "p", Offset: 1, Text: "b"},
			{Type: event.PartUpdate, Turn: "t", Message: "new", Part: "p"},
			{Type: event.TurnEnd, Turn: "t"},
		}, false},
		"title":              {[]event.Event{{Type: event.ConversationUpdate}}, false},
		"queued turn ends":   {[]event.Event{{Type: event.TurnEnd, Turn: "old"}}, false},
		"state of a message": {[]event.Event{{Type: event.MessageUpdate, Message: "old"}}, false},
		"record":             {[]event.Event{{Type: event.Record}}, false},
		"append":             {[]event.Event{{Type: event.PartAppend, Message: "old", Part: "p", Offset: 3}}, true},
		"retract":            {[]event.Event{{Type: event.PartReplace, Message: "old", Part: "p"}}, true},
		"media":              {[]event.Event{{Type: event.PartUpdate, Message: "old", Part: "p"}}, true},
		"truncate":           {[]event.Event{{Type: event.ConversationTruncate, Message: "old"}}, true},
		"started again":      {[]event.Event{start, {Type: event.PartAppend, Message: "new", Part: "p", Offset: 3}}, true},
		"nothing":            {nil, false},
	} {
		for i := range c.live {
			c.live[i].Seq = int64(i + 1)
		}
		read := false
		r, err := Merge(c.live, []Commit{{Last: 100}}, func() ([]event.Event, error) {
			read = true
			return nil, nil
		})
		if err != nil || read != c.want || r.ReplaceAll != c.want {
			t.Errorf("%s: read %v, whole %v, want %v; %v", name, read, r.ReplaceAll, c.want, err)
		}
	}
	fails := errors.New("fails")
	if _, err := Merge([]event.Event{{Type: event.ConversationTruncate}}, nil, func() ([]event.Event, error) { return nil, fails }); !errors.Is(err, fails) {
		t.Errorf("an error of the read: %v", err)
	}
}

func TestBlank(t *testing.T) {
	about := func(seq int64, id, data string) event.Event {
		return event.Event{Seq: seq, At: 9, Type: event.Record, Body: &event.Body{RecordKind: "k", Conversation: id, Title: &data, Data: json.RawMessage(`"` + data + `"`)}}
	}
	chunk, err := Encode(nil, []event.Event{
		about(1, "c", "secret"), about(2, "cc", "stays, though it says c"), about(3, "", `\"conversation\":\"c\"`),
		{Seq: 4, Type: event.MessageAdd, Message: "m", Body: &event.Body{Role: event.User, Conversation: "c", Parts: []event.Part{{Kind: event.KindText, Text: "no record"}}}},
		about(5, "c", "secret"),
	})
	if err != nil {
		t.Fatal(err)
	}
	blank, err := Blank(chunk, About("c"))
	if err != nil {
		t.Fatal(err)
	}
	if len(blank) != len(chunk) {
		t.Errorf("%d bytes became %d", len(chunk), len(blank))
	}
	if strings.Contains(string(blank), "secret") {
		t.Errorf("the data is still there:\n%s", blank)
	}
	events, err := Decode(nil, blank, 0)
	if err != nil || len(events) != 5 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	for i, e := range events {
		if e.Seq != int64(i+1) || (e.Get().Conversation == "c" && e.Type == event.Record) != (string(e.Get().Data) == "null") {
			t.Errorf("event %+v, %+v", e, e.Body)
		}
	}
	if again, err := Blank(blank, About("c")); again != nil || err != nil {
		t.Errorf("there is more to blank: %q, %v", again, err)
	}
	if none, err := Blank(chunk, About("d")); none != nil || err != nil {
		t.Errorf("of another conversation: %q, %v", none, err)
	}
}

// The name of the person who stopped a turn is removed from its end. The outcome stays.
func TestBlankStoppedBy(t *testing.T) {
	end := func(seq int64, by string) event.Event {
		return event.Event{Seq: seq, At: 9, Turn: "t", Type: event.TurnEnd, Body: &event.Body{Outcome: event.Cancelled, Reason: "stopped", StoppedBy: by, Usage: &event.Usage{Input: 3}}}
	}
	chunk, err := Encode(nil, []event.Event{end(1, "bob"), end(2, "alice"), end(3, "")})
	if err != nil {
		t.Fatal(err)
	}
	of := Selection{Match: func(e *event.Event) bool { return e.Get().StoppedBy != "alice" }}
	blank, err := Blank(chunk, of)
	if err != nil || len(blank) != len(chunk) {
		t.Fatalf("%q, %v", blank, err)
	}
	events, err := Decode(nil, blank, 0)
	if err != nil || len(events) != 3 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	for i, by := range []string{"", "alice", ""} {
		if b := events[i].Get(); b.StoppedBy != by || b.Outcome != event.Cancelled || b.Reason != "stopped" || b.Usage == nil || b.Usage.Input != 3 {
			t.Errorf("event %d: %+v", i+1, b)
		}
	}
	if again, err := Blank(blank, of); again != nil || err != nil {
		t.Errorf("there is more to blank: %q, %v", again, err)
	}
}
