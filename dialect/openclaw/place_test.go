package openclaw

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func (s *script) think(text string) string {
	return s.agent("thinking", fields{"text": text, "delta": "?"})
}

func (s *script) files(id, text string, urls ...string) string {
	return s.agent("assistant", fields{"text": text, "delta": "", "itemId": id, "mediaUrls": urls})
}

// ends returns the end of a run's lifecycle, with its last text as the model wrote it.
func (s *script) ends(raw string) string {
	return s.agent("lifecycle", fields{"phase": "end", "terminalReply": fields{"disposition": "visible", "text": raw}})
}

func thinks(text string) fields { return fields{"type": "thinking", "thinking": text} }

// A file is shown where the model named it, although the gateway names it after the text.
func TestPlace(t *testing.T) {
	for _, tt := range []struct {
		name   string
		frames func(*script) []string
		want   []string
	}{
		{"between two texts", func(s *script) []string {
			return []string{s.item("1", "Before.\nAfter."), s.files("1", "Before.\nAfter.", "/a.png"), s.ends("Before.\nMEDIA:/a.png\nAfter.")}
		}, []string{`text "Before.\n"`, "media /a.png", `text "After."`}},
		{"two, and text around each", func(s *script) []string {
			return []string{
				s.item("1", "One.\nTwo.\nThree."), s.files("1", "One.\nTwo.\nThree.", "/a.png", "/b.png"),
				s.ends("One.\nMEDIA:/a.png\nTwo.\nMEDIA:/b.png\nThree."),
			}
		}, []string{`text "One.\n"`, "media /a.png", `text "Two.\n"`, "media /b.png", `text "Three."`}},
		{"before the text", func(s *script) []string {
			return []string{s.item("1", "After."), s.files("1", "After.", "/a.png"), s.ends("MEDIA:/a.png\nAfter.")}
		}, []string{`text ""`, "media /a.png", `text "After."`}},
		{"behind the text", func(s *script) []string {
			return []string{s.item("1", "Before."), s.files("1", "Before.", "/a.png"), s.ends("Before.\nMEDIA:/a.png")}
		}, []string{`text "Before."`, "media /a.png"}},
		{"of a text before a tool", func(s *script) []string {
			return []string{
				s.item("1", "Before."), s.files("1", "Before.", "/a.png"), s.tool("start", "c1", fields{"args": fields{"command": "ls"}}),
				s.tool("result", "c1", fields{"result": texts("x")}), s.item("2", "After."), s.ends("After."),
			}
		}, []string{`text "Before."`, "media /a.png", `tool exec "" done in={"command":"ls"} out="x"`, `text "After."`}},
		{"the end does not come", func(s *script) []string {
			return []string{s.item("1", "Before.\nAfter."), s.files("1", "Before.\nAfter.", "/a.png")}
		}, []string{`text "Before.\nAfter."`, "media /a.png"}},
		{"the end is of another text", func(s *script) []string {
			return []string{s.item("1", "Before.\nAfter."), s.files("1", "Before.\nAfter.", "/a.png"), s.ends("Else.\nMEDIA:/a.png\nThis.")}
		}, []string{`text "Before.\nAfter."`, "media /a.png"}},
		{"a text that is taken back afterwards", func(s *script) []string {
			return []string{
				s.item("1", "Before.\nAfter."), s.files("1", "Before.\nAfter.", "/a.png"), s.ends("Before.\nMEDIA:/a.png\nAfter."),
				s.agent("assistant", fields{"text": "", "delta": "", "replace": true, "itemId": "1"}), s.item("2", "Anew."),
			}
		}, []string{`text ""`, "media /a.png", `text ""`, `text "Anew."`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := ready("s")
			f, _ := play(t, append(append([]string{hello4}, tt.frames(s)...), s.chat("final", "", nil))...)
			if d := cmp.Diff(tt.want, parts(f.Tr.Message(s.run))); d != "" {
				t.Error(d)
			}
		})
	}
}

// The model reasons between two texts. The gateway streams the second one as a replacement of the first, but its history has both.
func TestTextsAroundAThought(t *testing.T) {
	replaced := func(s *script, id, text string) string {
		return s.agent("assistant", fields{"text": text, "delta": "", "replace": true, "itemId": id})
	}
	preamble := func(s *script, text string) string {
		return s.agent("item", fields{"kind": "preamble", "phase": "end", "itemId": "c1", "progressText": text})
	}
	for _, tt := range []struct {
		name   string
		frames func(*script) []string
		want   []string
	}{
		{"both stay", func(s *script) []string {
			return []string{
				s.item("1", "First"), s.item("1", "First text."), s.think("Hm."), replaced(s, "1", "Second text."),
				rows(s.row("assistant", said("First text.")), s.row("assistant", thinks("Hm."), said("Second text."))), s.chat("final", "Second text.", nil),
			}
		}, []string{`text "First text."`, `reasoning "Hm."`, `text "Second text."`}},
		{"the second goes on", func(s *script) []string {
			return []string{
				s.item("1", "First text."), s.think("Hm."), replaced(s, "1", "Second"), s.item("1", "Second text."), s.chat("final", "Second text.", nil),
			}
		}, []string{`text "First text."`, `reasoning "Hm."`, `text "Second text."`}},
		{"both are taken back", func(s *script) []string {
			return []string{
				s.item("1", "First text."), s.think("Hm."), replaced(s, "1", "Second"), replaced(s, "1", ""), s.item("2", "Anew."), s.chat("final", "Anew.", nil),
			}
		}, []string{`text ""`, `reasoning "Hm."`, `text ""`, `text "Anew."`}},
		{"without a thought the agent corrects itself", func(s *script) []string {
			return []string{s.item("1", "Wrong."), replaced(s, "1", "Right."), s.chat("final", "Right.", nil)}
		}, []string{`text "Right."`}},
		{"before a tool, where a preamble alone tells of the second", func(s *script) []string {
			h := rows(
				s.row("assistant", said("First text.")), s.row("assistant", said("Second text.")), s.row("assistant", thinks("Hm."), called("c1", "ls")), s.result("c1", "x"),
				s.row("assistant", said("Third text.")), s.row("assistant", thinks("Mh."), said("Fourth.")),
			)
			return []string{
				s.item("1", "First text."), s.think("Hm."), preamble(s, "First text. Second text."), s.tool("start", "c1", fields{"args": fields{"command": "ls"}}),
				s.tool("result", "c1", fields{"result": texts("x")}), s.think("Mh."), s.item("2", "Fourth."), h, h, s.chat("final", "First text.\n\nFourth.", nil),
			}
		}, []string{
			`text "First text."`, `reasoning "Hm."`, `text "Second text."`, `tool exec "" done in={"command":"ls"} out="x"`, `reasoning "Mh."`, `text "Third text.\n\nFourth."`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := ready("s")
			f, _ := play(t, append([]string{hello4}, tt.frames(s)...)...)
			if d := cmp.Diff(tt.want, parts(f.Tr.Message(s.run))); d != "" {
				t.Error(d)
			}
		})
	}
}

// Reasoning that was not streamed is taken from the history: always in protocol 3, in protocol 4 after a disconnect.
func TestReasoningOfHistory(t *testing.T) {
	for _, tt := range []struct {
		name   string
		frames func(*script) []string
		want   []string
	}{
		{"was not streamed", func(s *script) []string {
			h := rows(s.row("assistant", thinks("Hm. "), said("One.")), s.row("assistant", thinks("Mh."), said("Two.")))
			return []string{s.item("1", "One."), h, h, s.chat("final", "One.\n\nTwo.", nil)}
		}, []string{`text "One."`, `reasoning "Hm."`, `reasoning "Mh."`, `text "Two."`}},
		{"in several blocks", func(s *script) []string {
			return []string{s.think("Hm.\nMh."), s.item("1", "One."), rows(s.row("assistant", thinks("Hm. "), thinks("Mh."), said("One.")))}
		}, []string{`reasoning "Hm.\nMh."`, `text "One."`}},
		{"was cut", func(s *script) []string {
			return []string{s.think("Hm"), rows(s.row("assistant", thinks("Hm, well."), said("One.")))}
		}, []string{`reasoning "Hm, well."`, `text "One."`}},
		{"was streamed in other words", func(s *script) []string {
			return []string{s.think("A summary"), s.item("1", "One."), rows(s.row("assistant", thinks("All of it."), said("One.")))}
		}, []string{`reasoning "A summary"`, `text "One."`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := ready("s")
			f, _ := play(t, append(append([]string{hello4}, tt.frames(s)...), s.chat("final", "", nil))...)
			if d := cmp.Diff(tt.want, parts(f.Tr.Message(s.run))); d != "" {
				t.Error(d)
			}
		})
	}
}

// In the history of a failed run, the gateway writes its own warning in front of the model's text. The warning is not shown.
func TestWarning(t *testing.T) {
	for text, want := range map[string][]string{
		"⚠️ LLM request failed (request format rejected, HTTP 400).": {`text "Half"`},
		"LLM request failed: interrupted.\n\nHalf of it":             {`text "Half of it"`},
	} {
		s := ready("s")
		row := s.row("assistant", said(text))
		row["stopReason"], row["idempotencyKey"] = "error", s.run+":terminal-error"
		f, _ := play(t, hello4, s.item("1", "Half"), rows(row), s.chat("error", "", fields{"errorMessage": "LLM request failed"}))
		if d := cmp.Diff(want, parts(f.Tr.Message(s.run))); d != "" {
			t.Error(d)
		}
	}
}
