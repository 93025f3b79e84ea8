package eliza

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

func TestTokenFrames(t *testing.T) {
	long := strings.Repeat("x", 3000)
	for _, c := range []struct {
		name   string
		tokens tokens
		texts  []string
		want   []string
	}{
		{"text that grows is appended", tokens{}, []string{"", "Hello", "Hello", "Hello world"}, []string{
			"", `{"type":"token","text":"Hello","fullText":"Hello"}`, "", `{"type":"token","text":" world","fullText":"Hello world"}`,
		}},
		{"any other is a snapshot", tokens{}, []string{"Looking", "Now", "N", ""}, []string{
			`{"type":"token","text":"Looking","fullText":"Looking"}`, `{"type":"token","text":"Now","fullText":"Now"}`,
			`{"type":"token","text":"N","fullText":"N"}`, `{"type":"token","text":"","fullText":""}`,
		}},
		{"overlaps are not guessed at", tokens{}, []string{"ha", "haha"}, []string{
			`{"type":"token","text":"ha","fullText":"ha"}`, `{"type":"token","text":"ha","fullText":"haha"}`,
		}},
		{"a client with an unknown text gets all of it", tokens{unknown: true}, []string{"Hello", "Hello."}, []string{
			`{"type":"token","text":"Hello","fullText":"Hello"}`, `{"type":"token","text":".","fullText":"Hello."}`,
		}},
		{"also without a current text", tokens{unknown: true}, []string{"", ""}, []string{`{"type":"token","text":"","fullText":""}`, ""}},
		{"one line a frame", tokens{}, []string{"a\nb\r\n\"c\"\\\u2028<&>\x00"}, []string{
			`{"type":"token","text":"a\nb\r\n\"c\"\\\u2028<&>\u0000","fullText":"a\nb\r\n\"c\"\\\u2028<&>\u0000"}`,
		}},
		{"delta-v2: bare deltas, a replace without text", tokens{deltas: true}, []string{"a", "ab", "c"}, []string{
			`{"type":"token","text":"a"}`, `{"type":"token","text":"b"}`, `{"type":"token","fullText":"c"}`,
		}},
		{"delta-v2: a client with an unknown text", tokens{deltas: true, unknown: true}, []string{"ab", "abc"}, []string{
			`{"type":"token","fullText":"ab"}`, `{"type":"token","text":"c"}`,
		}},
		{"delta-v2: the whole text after 2048 bytes", tokens{deltas: true}, []string{long[:2047], long[:2048], long[:2049]}, []string{
			`{"type":"token","text":"` + long[:2047] + `"}`, `{"type":"token","text":"x","fullText":"` + long[:2048] + `"}`, `{"type":"token","text":"x"}`,
		}},
		{"delta-v2: and then when the text has doubled", tokens{deltas: true, current: long, length: 3000}, []string{long + long[:2999], long + long}, []string{
			`{"type":"token","text":"` + long[:2999] + `"}`, `{"type":"token","text":"x","fullText":"` + long + long + `"}`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i, text := range c.texts {
				if got := string(c.tokens.next(nil, text)); got != c.want[i] {
					t.Errorf("frame %d\n got %s\nwant %s", i, got, c.want[i])
				}
			}
		})
	}
}

// For any sequence of states, a client of either protocol shows each of them.
func TestTokenFramesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := tokens{deltas: rapid.Bool().Draw(t, "delta-v2"), unknown: rapid.Bool().Draw(t, "unknown")}
		var c chat
		if k.unknown {
			c.text = rapid.String().Draw(t, "held")
		}
		text, sent := "", 0
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				text = rapid.String().Draw(t, "replace")
			default:
				text += rapid.StringN(0, 40, 200).Draw(t, "append") + strings.Repeat("y", rapid.SampledFrom([]int{0, 0, 900}).Draw(t, "more"))
			}
			f := k.next(nil, text)
			sent += len(f)
			if f != nil {
				if err := c.frame("data: " + string(f)); err != nil {
					t.Fatal(err)
				}
			}
			if want := strings.ToValidUTF8(text, "\ufffd"); c.text != want {
				t.Fatalf("the client shows %q, not %q", c.text, want)
			}
		}
		if k.deltas {
			for _, f := range c.tokens {
				if f.Text != nil && f.FullText != nil && len(*f.FullText) < minSnapshot {
					t.Fatalf("delta-v2 repeats a text of %d bytes", len(*f.FullText))
				}
			}
		}
	})
}

// delta-v2 exists so that the size of a long answer's stream is not quadratic.
func TestDeltasAreLinear(t *testing.T) {
	k := tokens{deltas: true}
	text, sent := "", 0
	for range 3000 {
		text += "word "
		sent += len(k.next(nil, text))
	}
	if limit := 10 * len(text); sent > limit {
		t.Errorf("%d bytes for a text of %d, more than %d", sent, len(text), limit)
	}
}

// build folds events into a transcript and numbers them.
func build(t *testing.T, events ...event.Event) *transcript.Transcript {
	t.Helper()
	var tr transcript.Transcript
	for i := range events {
		e := &events[i]
		e.Seq, e.At = int64(i+1), int64(1000+i)
		if err := tr.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	return &tr
}

func user(id, text string) event.Event {
	return event.Event{Type: event.MessageAdd, Message: id, Body: &event.Body{Role: event.User, Source: clientChat, Parts: []event.Part{{Kind: event.KindText, Text: text}}}}
}

func start(turn, answers string) event.Event {
	return event.Event{Type: event.TurnStart, Turn: turn, Body: &event.Body{Agent: "eliza", Answers: answers}}
}

// saidIn builds a message of a turn with one part for each "kind:text".
func saidIn(turn, id string, parts ...string) []event.Event {
	all := []event.Event{{Type: event.MessageStart, Turn: turn, Message: id, Body: &event.Body{Role: event.Assistant}}}
	for i, p := range parts {
		name, text, _ := strings.Cut(p, ":")
		kind := event.PartKind(name)
		part := fmt.Sprintf("p%d", i+1)
		e := event.Event{Type: event.PartReplace, Turn: turn, Message: id, Part: part, Text: text}
		if kind == event.KindStatus {
			e.Note = text
		}
		all = append(all, event.Event{Type: event.PartStart, Turn: turn, Message: id, Part: part, Body: &event.Body{Kind: kind, Join: event.JoinBlank}}, e)
	}
	return all
}

func over(turn string, outcome event.Outcome, err *event.Error) event.Event {
	return event.Event{Type: event.TurnEnd, Turn: turn, Body: &event.Body{Outcome: outcome, Error: err}}
}

func flat(groups ...[]event.Event) []event.Event {
	var all []event.Event
	for _, g := range groups {
		all = append(all, g...)
	}
	return all
}

func just(e ...event.Event) []event.Event { return e }

func TestList(t *testing.T) {
	ignore := cmp.Options{cmpopts.IgnoreUnexported(message{}), cmpopts.IgnoreFields(message{}, "Timestamp"), cmpopts.EquateEmpty()}
	pic := event.Event{Type: event.PartStart, Turn: "t1", Message: "a1", Part: "pic", Body: &event.Body{Kind: event.KindMedia, Media: &event.Media{URL: "/f/1", MIME: "image/png", Name: "cat", Alt: "a cat"}}}
	for _, c := range []struct {
		name   string
		events []event.Event
		want   []message
	}{
		{"a turn is one message under the id of its first", flat(just(user("u1", "hi"), start("t1", "u1")), saidIn("t1", "a1", "text:Hello"), saidIn("t1", "a2", "text:again"), just(over("t1", event.Completed, nil))), []message{
			{ID: "u1", Role: "user", Text: "hi"},
			{ID: "a1", Role: "assistant", Text: "Hello\n\nagain", Turn: "t1"},
		}},
		{"a running turn shows what is there", flat(just(user("u1", "hi"), start("t1", "u1")), saidIn("t1", "a1", "text:Hel")), []message{
			{ID: "u1", Role: "user", Text: "hi"}, {ID: "a1", Role: "assistant", Text: "Hel", Turn: "t1"},
		}},
		{"a trail before the text", flat(just(user("u1", "play"), start("t1", "u1")), saidIn("t1", "a1", "text:On it.", "status:Now playing"), just(over("t1", event.Completed, nil))), []message{
			{ID: "u1", Role: "user", Text: "play"},
			{ID: "a1", Role: "assistant", Text: "On it.\n\nNow playing", ActionCallbackHistory: []string{"Now playing"}, Turn: "t1"},
		}},
		{"a message in the middle of a turn does not tear it", flat(just(user("u1", "a"), start("t1", "u1")), saidIn("t1", "a1", "text:one"), just(user("u2", "b")), saidIn("t1", "a2", "text:two")), []message{
			{ID: "u1", Role: "user", Text: "a"}, {ID: "a1", Role: "assistant", Text: "one\n\ntwo", Turn: "t1"}, {ID: "u2", Role: "user", Text: "b"},
		}},
		{"blank ones are left out, and system messages", flat(just(user("u1", "a"), start("t1", "u1")), saidIn("t1", "a1", "reasoning:hm", "text: \n"), just(over("t1", event.Completed, nil),
			event.Event{Type: event.MessageAdd, Message: "s1", Body: &event.Body{Role: event.System, Parts: []event.Part{{Kind: event.KindText, Text: "be nice"}}}})), []message{
			{ID: "u1", Role: "user", Text: "a"},
		}},
		{"a picture is worth a message", flat(just(user("u1", "a"), start("t1", "u1")), saidIn("t1", "a1"), just(pic, over("t1", event.Completed, nil))), []message{
			{ID: "u1", Role: "user", Text: "a"},
			{ID: "a1", Role: "assistant", Turn: "t1", Attachments: []attachment{{ID: "a1.pic", URL: "/f/1", Title: "cat", Description: "a cat", ContentType: "image", MIMEType: "image/png"}}},
		}},
		{"messages of other sources name them", just(
			event.Event{Type: event.MessageAdd, Message: "n1", Body: &event.Body{Role: event.Assistant, Source: "reminder", Parts: []event.Part{{Kind: event.KindText, Text: "Stand up."}}}},
			event.Event{Type: event.MessageAdd, Message: "n2", Body: &event.Body{Role: event.User, Source: "telegram", Author: &event.Author{Name: "Ann"}, Parts: []event.Part{{Kind: event.KindText, Text: "ok"}}}},
			event.Event{Type: event.MessageAdd, Message: "n3", Body: &event.Body{Role: event.Assistant, Source: clientChat, Parts: []event.Part{{Kind: event.KindStatus, Text: "Done", History: []string{"Doing", "Done"}}}}},
		), []message{
			{ID: "n1", Role: "assistant", Text: "Stand up.", Source: "reminder"},
			{ID: "n2", Role: "user", Text: "ok", Source: "telegram", From: "Ann"},
			{ID: "n3", Role: "assistant", Text: "Doing\n\nDone", ActionCallbackHistory: []string{"Doing", "Done"}},
		}},
		{"stopped and interrupted turns are marked", flat(just(user("u1", "a"), start("t1", "u1")), saidIn("t1", "a1", "text:half"), just(over("t1", event.Cancelled, nil), start("t2", "u1")), saidIn("t2", "a2", "text:other half"), just(over("t2", event.Interrupted, nil))), []message{
			{ID: "u1", Role: "user", Text: "a"},
			{ID: "a1", Role: "assistant", Text: "half", Interrupted: true, Turn: "t1"},
			{ID: "a2", Role: "assistant", Text: "other half", Interrupted: true, FailureKind: providerIssue, Turn: "t2"},
		}},
		{"a failure without a word leaves a message", just(user("u1", "a"), start("t1", "u1"), over("t1", event.Failed, &event.Error{Code: "rate_limit_error", Message: "slow down"}),
			user("u2", "b"), start("t2", "u2"), over("t2", event.Failed, &event.Error{Code: "agent_error", Message: "oops"})), []message{
			{ID: "u1", Role: "user", Text: "a"},
			{ID: "t1", Role: "assistant", Text: failureTexts[rateLimited], FailureKind: rateLimited, Turn: "t1"},
			{ID: "u2", Role: "user", Text: "b"},
			{ID: "t2", Role: "assistant", Text: failureTexts[providerIssue], FailureKind: providerIssue, Turn: "t2"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := build(t, c.events...)
			if d := cmp.Diff(c.want, list(tr.Messages, tr.Turns), ignore); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func TestReload(t *testing.T) {
	for _, c := range []struct {
		name     string
		messages [][]event.Event
		want     string
	}{
		{"text alone", [][]event.Event{saidIn("t1", "a1", "text:Hello")}, "Hello"},
		{"nothing", [][]event.Event{saidIn("t1", "a1")}, ""},
		{"the outcome is in the text", [][]event.Event{saidIn("t1", "a1", "status:Looking"), {note("a1", "p1", "Found")}}, "Looking\n\nFound"},
		{"the outcome is the end of a text that came whole", [][]event.Event{saidIn("t1", "a1", "text:A\n\nFound", "status:x"), {note("a1", "p2", "Looking"), note("a1", "p2", "Found"), retract("a1", "p2")}}, "x\nLooking\n\nA\n\nFound"},
		{"the outcome was taken back", [][]event.Event{saidIn("t1", "a1", "text:A", "status:Looking"), {note("a1", "p2", "Found"), retract("a1", "p2")}}, "Looking\nFound\n\nA"},
		{"a blank text leaves the trail", [][]event.Event{saidIn("t1", "a1", "status:Looking"), {note("a1", "p1", "Found"), retract("a1", "p1")}}, "Looking\nFound"},
		{"a callback equal to the text of its message, among others", [][]event.Event{saidIn("t1", "a1", "text:First"), saidIn("t1", "a2", "text:Done", "status:Working"), {equal("a2", "p2", "Done")}}, "Working\n\nFirst\n\nDone"},
		{"a callback equal to one of its texts", [][]event.Event{saidIn("t1", "a1", "text:A", "status:Working", "text:B"), {equal("a1", "p2", "B")}}, "Working\n\nA\n\nB"},
		{"adjacent equals over messages", [][]event.Event{saidIn("t1", "a1", "status:Working"), saidIn("t1", "a2", "status:Working"), saidIn("t1", "a3", "text:ok")}, "Working\n\nWorking\n\nok"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := build(t, flat(append([][]event.Event{{start("t1", "")}}, c.messages...)...)...)
			a, ok := answerOf(tr.Messages, tr.Turns, "t1")
			if !ok {
				t.Fatal("no such turn")
			}
			if got := a.reload(a.text()); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func note(m, p, text string) event.Event {
	return event.Event{Type: event.PartReplace, Turn: "t1", Message: m, Part: p, Text: text, Note: text}
}

func equal(m, p, text string) event.Event {
	return event.Event{Type: event.PartReplace, Turn: "t1", Message: m, Part: p, Note: text}
}

func retract(m, p string) event.Event {
	return event.Event{Type: event.PartReplace, Turn: "t1", Message: m, Part: p}
}
