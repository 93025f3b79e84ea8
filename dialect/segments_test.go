package dialect_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/dialecttest"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
	"pgregory.net/rapid"
)

// step is one call of a Segments: "t:" text, "c:" callback, "a:" appending callback, "o:" callback with an odd merge, "break".
type step string

func (s step) apply(g *dialect.Segments) []event.Event {
	kind, text, _ := strings.Cut(string(s), ":")
	switch kind {
	case "t":
		return g.Text(text)
	case "c":
		return g.Callback(text, dialect.Replace)
	case "a":
		return g.Callback(text, dialect.Append)
	case "o":
		return g.Callback(text, "prepend")
	case "break":
		return g.Break()
	}
	panic("no such step: " + s)
}

// play applies the steps, restoring the Segments at each, and returns the message after each step and after Close.
func play(t interface {
	Helper()
	Fatal(...any)
}, steps []step,
) (views []string, m *transcript.Message, ops []event.Event) {
	t.Helper()
	f := dialecttest.NewFolder()
	take := func(got []event.Event) {
		ops = append(ops, got...)
		if err := f.Fold(got); err != nil {
			t.Fatal(err)
		}
		view := ""
		for _, m := range f.Transcript.Messages {
			view = m.Visible()
		}
		views = append(views, view)
	}
	var g dialect.Segments
	for _, s := range steps {
		st, err := g.State()
		if err != nil {
			t.Fatal(err)
		}
		g = dialect.Segments{}
		if err := g.Restore(st); err != nil {
			t.Fatal(err)
		}
		take(s.apply(&g))
	}
	take(g.Close())
	if got := g.Close(); len(got) > 0 {
		t.Fatal("a second Close returns operations")
	}
	for _, s := range []step{"t:x", "c:x", "a:x", "break"} {
		if got := s.apply(&g); len(got) > 0 {
			t.Fatal("Text or Callback returns operations after Close")
		}
	}
	if f.Mapper.DroppedOps > 0 {
		t.Fatal("operations that change nothing:", f.Mapper.DroppedOps)
	}
	if len(f.Transcript.Messages) > 0 {
		m = f.Transcript.Messages[0]
		for _, p := range m.Parts {
			if !p.Final {
				t.Fatal("part", p.ID, "is open after Close")
			}
		}
		if !m.Final {
			t.Fatal("the message is open after Close")
		}
	}
	return views, m, ops
}

// The statuses of the example in Eliza's document on callbacks.
const (
	looking   = "🔍 Looking up track..."
	searching = "🔍 Searching for track..."
	setting   = "✨ Setting up playback..."
	playing   = "Now playing: **Song**"
)

func TestSegments(t *testing.T) {
	tests := []struct {
		name    string
		steps   []step
		views   []string // after each step and after Close
		history []string
	}{
		{
			"nothing", nil, []string{""}, nil,
		},
		{
			"text", []step{"t:Hello ", "t:world"}, []string{"Hello ", "Hello world", "Hello world"}, nil,
		},
		{
			"statuses alone",
			[]step{"c:" + looking, "c:" + searching, "c:" + setting, "c:" + playing},
			[]string{looking, searching, setting, playing, playing},
			[]string{looking, searching, setting, playing},
		},
		{
			"statuses after text",
			[]step{"t:Sure, ", "t:one moment.", "c:" + looking, "c:" + searching, "c:" + setting, "c:" + playing},
			[]string{
				"Sure, ", "Sure, one moment.", "Sure, one moment.\n\n" + looking, "Sure, one moment.\n\n" + searching,
				"Sure, one moment.\n\n" + setting, "Sure, one moment.\n\n" + playing, "Sure, one moment.\n\n" + playing,
			},
			[]string{looking, searching, setting, playing},
		},
		{
			"append extends", []step{"c:Load", "a:ing", "a:..."}, []string{"Load", "Loading", "Loading...", "Loading..."}, []string{"Loading..."},
		},
		{
			"a callback that equals the extended status", []step{"c:a", "a:b", "c:ab", "c:ab"}, []string{"a", "ab", "ab", "ab", "ab"}, []string{"ab"},
		},
		{
			"append opens", []step{"t:Hi", "a:Load", "a:ing"}, []string{"Hi", "Hi\n\nLoad", "Hi\n\nLoading", "Hi\n\nLoading"}, []string{"Loading"},
		},
		{
			"append is raw", []step{"c:a", "a: \n", "a: b"}, []string{"a", "a \n", "a \n b", "a \n b"}, []string{"a \n b"},
		},
		{
			"replace after append", []step{"c:a", "a:b", "c:c"}, []string{"a", "ab", "c", "c"}, []string{"ab", "c"},
		},
		{
			"any other merge replaces", []step{"c:a", "o:b"}, []string{"a", "b", "b"}, []string{"a", "b"},
		},
		{
			"empty and blank callbacks", []step{"c:", "a:", "c: \n", "a: \n", "t:x", "c:", "c:a", "c: "}, []string{"", "", "", "", "x", "x", "x\n\na", "x\n\na", "x\n\na"}, []string{"a"},
		},
		{
			"the same status twice is one", []step{"c:a", "c:a", "c:b", "c:a"}, []string{"a", "a", "b", "a", "a"}, []string{"a", "b", "a"},
		},
		{
			"the note is trimmed, the text is not", []step{"c:  a  "}, []string{"  a  ", "  a  "}, []string{"a"},
		},
		{
			"letter by letter, each replaces", []step{"c:H", "c:He", "c:Hel"}, []string{"H", "He", "Hel", "Hel"}, []string{"H", "He", "Hel"},
		},
		{
			"text after a status is kept",
			[]step{"t:A", "c:s1", "t:B", "t:C", "c:s2", "t:D"},
			[]string{"A", "A\n\ns1", "A\n\ns1\n\nB", "A\n\ns1\n\nBC", "A\n\ns2\n\nBC", "A\n\ns2\n\nBCD", "A\n\ns2\n\nBCD"},
			[]string{"s1", "s2"},
		},
		{
			"a callback that equals the text", []step{"t:Hello ", "t:world", "c:Hello world"}, []string{"Hello ", "Hello world", "Hello world", "Hello world"}, []string{"Hello world"},
		},
		{
			"equal but for the space around", []step{"t:\n Hello", "t: \n", "c: Hello"}, []string{"\n Hello", "\n Hello \n", "\n Hello \n", "\n Hello \n"}, []string{"Hello"},
		},
		{
			"text after an equal callback continues its part", []step{"t:Hello", "c:Hello", "t:, world"}, []string{"Hello", "Hello", "Hello, world", "Hello, world"}, []string{"Hello"},
		},
		{
			"a status after an equal callback", []step{"t:Hello", "c:Hello", "t:!", "c:busy", "t:more"}, []string{"Hello", "Hello", "Hello!", "Hello!\n\nbusy", "Hello!\n\nbusy\n\nmore", "Hello!\n\nbusy\n\nmore"}, []string{"Hello", "busy"},
		},
		{
			"an equal callback takes the place of the status", []step{"t:Hello", "c:busy", "c:Hello"}, []string{"Hello", "Hello\n\nbusy", "Hello", "Hello"}, []string{"busy", "Hello"},
		},
		{
			"append to an equal callback", []step{"t:Hello", "a:Hello", "a: again"}, []string{"Hello", "Hello", "Hello\n\nHello again", "Hello\n\nHello again"}, []string{"Hello again"},
		},
		{
			"equal to the last text part", []step{"t:A", "break", "t:B", "c:B"}, []string{"A", "A", "A\n\nB", "A\n\nB", "A\n\nB"}, []string{"B"},
		},
		{
			"equal to all text", []step{"t:A", "break", "t:B", "c:A\n\nB"}, []string{"A", "A", "A\n\nB", "A\n\nB", "A\n\nB"}, []string{"A\n\nB"},
		},
		{
			"text that repeats the callback", []step{"c:Hello world", "t:Hello ", "t:world"}, []string{"Hello world", "Hello world", "Hello world", "Hello world"}, []string{"Hello world"},
		},
		{
			"but for the space around it", []step{"c: Hello ", "t:\n", "t:Hello", "t: \n\n"}, []string{" Hello ", " Hello ", " Hello ", " Hello ", " Hello "}, []string{"Hello"},
		},
		{
			"text that diverges", []step{"c:Hello world", "t:Hello ", "t:there"}, []string{"Hello world", "Hello world", "Hello world\n\nHello there", "Hello world\n\nHello there"}, []string{"Hello world"},
		},
		{
			"text that goes beyond", []step{"c:Done", "t:Done", "t:, and more"}, []string{"Done", "Done", "Done\n\nDone, and more", "Done\n\nDone, and more"}, []string{"Done"},
		},
		{
			"text that stops half-way", []step{"c:Hello world", "t:Hello"}, []string{"Hello world", "Hello world", "Hello world\n\nHello"}, []string{"Hello world"},
		},
		{
			"a break releases", []step{"c:Hello world", "t:Hello", "break", "t:x"}, []string{"Hello world", "Hello world", "Hello world\n\nHello", "Hello world\n\nHello\n\nx", "Hello world\n\nHello\n\nx"}, []string{"Hello world"},
		},
		{
			"a whole repeat at a break is dropped", []step{"c:Hello", "t:Hello", "break", "t:x"}, []string{"Hello", "Hello", "Hello", "Hello\n\nx", "Hello\n\nx"}, []string{"Hello"},
		},
		{
			"another callback releases", []step{"c:Hello world", "t:Hello", "c:busy"}, []string{"Hello world", "Hello world", "busy\n\nHello", "busy\n\nHello"}, []string{"Hello world", "busy"},
		},
		{
			"the same callback keeps it held", []step{"c:Hello", "t:Hello", "c:Hello"}, []string{"Hello", "Hello", "Hello", "Hello"}, []string{"Hello"},
		},
		{
			"a callback that equals what was held", []step{"c:Hello world", "t:Hello", "c:Hello"}, []string{"Hello world", "Hello world", "Hello", "Hello"}, []string{"Hello world", "Hello"},
		},
		{
			"text that repeats an extended status", []step{"c:Hel", "a:lo", "t:Hel", "t:lo"}, []string{"Hel", "Hello", "Hello", "Hello", "Hello"}, []string{"Hello"},
		},
		{
			"an extension releases", []step{"c:Hel", "t:He", "a:lo", "t:llo"}, []string{"Hel", "Hel", "Hello\n\nHe", "Hello\n\nHello", "Hello\n\nHello"}, []string{"Hello"},
		},
		{
			"a break before any text", []step{"break", "t:x"}, []string{"", "x", "x"}, nil,
		},
		{
			"a character in two texts", []step{"t:caf\xc3", "t:\xa9"}, []string{"caf", "café", "café"}, nil,
		},
		{
			"half a character at the end", []step{"t:caf\xc3"}, []string{"caf", "caf\ufffd"}, nil,
		},
		{
			"half a character at a break", []step{"t:caf\xc3", "break", "t:x"}, []string{"caf", "caf\ufffd", "caf\ufffd\n\nx", "caf\ufffd\n\nx"}, nil,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			views, m, _ := play(t, tt.steps)
			if diff := cmp.Diff(tt.views, views); diff != "" {
				t.Error(diff)
			}
			var history []string
			if m != nil {
				history = m.History()
			}
			if diff := cmp.Diff(tt.history, history); diff != "" {
				t.Errorf("history: %s", diff)
			}
		})
	}
}

func TestSegmentsOperations(t *testing.T) {
	_, _, ops := play(t, []step{"t:Hi", "c:a ", "c:a b", "c:Hi"})
	const m = dialect.SegmentsMessage
	want := []event.Event{
		{Type: event.MessageStart, Message: m, Body: &event.Body{Role: event.Assistant}},
		{Type: event.PartStart, Message: m, Part: "t1", Body: &event.Body{Kind: event.KindText, Join: event.JoinBlank}},
		{Type: event.PartAppend, Message: m, Part: "t1", Text: "Hi"},
		{Type: event.PartStart, Message: m, Part: "s2", Body: &event.Body{Kind: event.KindStatus, Join: event.JoinBlank}},
		{Type: event.PartEnd, Message: m, Part: "t1"},
		{Type: event.PartAppend, Message: m, Part: "s2", Text: "a ", Note: "a"},
		{Type: event.PartAppend, Message: m, Part: "s2", Text: "b", Note: "a b"},
		{Type: event.PartReplace, Message: m, Part: "s2", Note: "Hi"},
		{Type: event.PartEnd, Message: m, Part: "s2"},
		{Type: event.MessageEnd, Message: m},
	}
	if diff := cmp.Diff(want, ops); diff != "" {
		t.Error(diff)
	}
}

func TestSegmentsRestoreRefuses(t *testing.T) {
	for _, bad := range []string{``, `[]`, `{"held":"x"}`, `{"status":{"n":1}}`} {
		if err := new(dialect.Segments).Restore([]byte(bad)); err == nil {
			t.Errorf("%s is accepted as a state", bad)
		}
	}
}

// TestSegmentsState checks that the state has no streamed text, only its length and hash.
func TestSegmentsState(t *testing.T) {
	var g dialect.Segments
	for i := range 1000 {
		g.Text(fmt.Sprintf("a long answer, part %d; ", i))
		if i%10 == 0 {
			g.Callback(strings.Repeat("x", 100<<10), dialect.Replace)
		}
	}
	st, err := g.State()
	if err != nil {
		t.Fatal(err)
	}
	if len(st) > 1000 {
		t.Errorf("the state has %d bytes: %.200s", len(st), st)
	}
}

// The notes of a status that keeps growing are limited, each on its own and in total.
func TestSegmentsLongExtension(t *testing.T) {
	var g dialect.Segments
	size := 0
	for range 100_000 {
		for _, e := range g.Callback("0123456789", dialect.Append) {
			size += len(e.Note)
		}
	}
	if size > 2<<20 {
		t.Errorf("the notes of a megabyte have %d bytes", size)
	}
}

// TestSegmentsModel compares Segments with a simple implementation that stores whole texts: one status, the texts before
// and after it, and the two comparisons.
func TestSegmentsModel(t *testing.T) {
	word := rapid.SampledFrom([]string{"a", "b", "ab", "a b", " ", "\n", "", "aa", " a", "b ", "é"})
	rapid.Check(t, func(t *rapid.T) {
		var steps []step
		for range rapid.IntRange(0, 12).Draw(t, "n") {
			kind := rapid.SampledFrom([]string{"t", "t", "t", "c", "c", "a", "break"}).Draw(t, "kind")
			if kind != "break" {
				kind += ":" + word.Draw(t, "text")
			}
			steps = append(steps, step(kind))
		}
		views, msg, _ := play(t, steps)
		var m model
		for i, s := range steps {
			m.apply(s)
			if got := views[i]; got != m.view() {
				t.Fatalf("after %q: %q, want %q", steps[:i+1], got, m.view())
			}
		}
		m.settle()
		if got := views[len(steps)]; got != m.view() {
			t.Fatalf("after %q and Close: %q, want %q", steps, got, m.view())
		}
		if msg != nil && fmt.Sprint(msg.History()) != fmt.Sprint(m.history) {
			t.Fatalf("after %q: history %q, want %q", steps, msg.History(), m.history)
		}
	})
}

// model is the simple implementation.
type model struct {
	segments []segment
	slot     int // position of the status, from 1; 0 if it is missing
	open     bool
	armed    bool
	status   string // what the status says, whether it is shown or not
	held     string
	history  []string
}

type segment struct {
	status bool
	text   string
}

func (m *model) view() string {
	var parts []string
	for _, s := range m.segments {
		if s.text != "" {
			parts = append(parts, s.text)
		}
	}
	return strings.Join(parts, "\n\n")
}

func (m *model) said() (all, last string) {
	var parts []string
	for _, s := range m.segments {
		if !s.status {
			parts, last = append(parts, s.text), s.text
		}
	}
	return strings.TrimSpace(strings.Join(parts, "\n\n")), strings.TrimSpace(last)
}

func (m *model) say(text string) {
	m.held, m.armed = "", false
	if !m.open {
		m.segments, m.open = append(m.segments, segment{}), true
	}
	m.segments[len(m.segments)-1].text += text
	if m.slot == len(m.segments) { // an unseen status behind the open text
		m.segments[len(m.segments)-1].text = strings.TrimSuffix(m.segments[len(m.segments)-1].text, text)
		m.segments[len(m.segments)-2].text += text
	}
}

func (m *model) settle() {
	if m.held != "" && strings.TrimSpace(m.held) == strings.TrimSpace(m.status) {
		m.held, m.armed = "", false
	}
	if m.held != "" {
		m.say(m.held)
	}
}

func (m *model) apply(s step) {
	kind, text, _ := strings.Cut(string(s), ":")
	switch {
	case kind == "break":
		m.settle()
		m.open = false
	case text == "":
	case kind == "t":
		if m.armed && !m.open {
			m.held += text
			if all := strings.TrimSpace(m.status); strings.HasPrefix(all, strings.TrimLeft(m.held, " \n")) || strings.TrimSpace(m.held) == all {
				return
			}
			text = m.held
		}
		m.say(text)
	default:
		m.callback(text, kind == "a")
	}
}

func (m *model) callback(text string, extend bool) {
	note := strings.TrimSpace(text)
	shown := m.slot > 0 && m.segments[m.slot-1].text != ""
	record := func(extends bool) {
		note := strings.TrimSpace(m.status)
		if extends && len(m.history) > 0 {
			m.history = m.history[:len(m.history)-1]
		}
		if len(m.history) == 0 || m.history[len(m.history)-1] != note {
			m.history = append(m.history, note)
		}
	}
	if extend && shown {
		if m.held != "" {
			m.say(m.held)
		}
		m.status += text
		m.segments[m.slot-1].text = m.status
		record(true)
		return
	}
	if note == "" {
		return
	}
	extends := extend && m.slot > 0
	if extends {
		text = m.status + text
	}
	if m.held != "" {
		if shown && text == m.status {
			return
		}
		m.say(m.held)
	}
	all, last := m.said()
	equal := strings.TrimSpace(text) == all || strings.TrimSpace(text) == last
	if m.slot == 0 {
		m.segments = append(m.segments, segment{status: true})
		m.slot = len(m.segments)
	}
	m.status = text
	record(extends)
	m.armed = false
	if equal {
		m.segments[m.slot-1].text = ""
		return
	}
	m.segments[m.slot-1].text = text
	if m.open && m.slot == len(m.segments) {
		m.open = false
	}
	m.armed = !m.open
}
