package openclaw

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rows returns a response to chat.history.
func rows(rows ...fields) string {
	b, err := json.Marshal(fields{"type": "res", "id": "h", "ok": true, "payload": fields{"sessionKey": "s", "messages": rows}})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func (s *script) row(role string, content ...fields) fields {
	return fields{"role": role, "content": content, "__openclaw": fields{"runId": s.run}}
}

func said(text string) fields { return fields{"type": "text", "text": text} }

func called(id, command string) fields {
	return fields{"type": "toolCall", "id": id, "name": "exec", "arguments": fields{"command": command}}
}

func (s *script) result(id, output string) fields {
	r := s.row("toolResult", said(output))
	r["toolCallId"], r["toolName"] = id, "exec"
	return r
}

func TestHistory(t *testing.T) {
	for _, tt := range []struct {
		name   string
		frames func(*script) []string
		want   []string
	}{
		{"the rest of a text, a tool and the next text, each once", func(s *script) []string {
			h := rows(s.row("assistant", said("First segment.")), s.row("assistant", called("c1", "ls")), s.result("c1", "out"), s.row("assistant", said("Second.")))
			return []string{s.item("1", "First"), h, h, s.chat("final", "First segment.\n\nSecond.", nil)}
		}, []string{`text "First segment."`, `tool exec "" done in={"command":"ls"} out="out"`, `text "Second."`}},
		{"a text between two that were seen goes to the end of the first, once", func(s *script) []string {
			h := rows(s.row("assistant", said("One.")), s.row("assistant", said("Two.")), s.row("assistant", said("Three.")))
			return []string{s.item("1", "One."), s.item("3", "Three."), h, h, s.chat("final", "One.\n\nTwo.\n\nThree.", nil)}
		}, []string{`text "One.\n\nTwo."`, `text "Three."`}},
		{"a text whose own frames come after it", func(s *script) []string {
			return []string{
				s.item("1", "One."), rows(s.row("assistant", said("One.")), s.row("assistant", said("Two."))),
				s.item("2", "Two."), s.item("2", "Two. And more."), s.item("2", "Two."), s.chat("final", "", nil),
			}
		}, []string{`text "One."`, `text "Two. And more."`}},
		{"one that is shorter takes nothing back", func(s *script) []string {
			return []string{s.item("1", "One and a half"), rows(s.row("assistant", said("One"))), s.chat("final", "", nil)}
		}, []string{`text "One and a half"`}},
		{"what is cut at its end, and names a file", func(s *script) []string {
			return []string{s.item("1", "One"), rows(s.row("assistant", said("One two\nMEDIA:/a/b.png\nthree\n...(truncated)..."))), s.chat("final", "", nil)}
		}, []string{`text "One two\nthree"`, "media /a/b.png"}},
		{"the input of a tool whose start was missed", func(s *script) []string {
			h := rows(s.row("assistant", called("c1", "ls")), s.result("c1", "out"))
			return []string{s.tool("result", "c1", fields{"result": fields{"content": []fields{said("out")}}}), h, h, s.chat("final", "", nil)}
		}, []string{`tool exec "" done in={"command":"ls"} out="out"`}},
		{"rows of other runs", func(s *script) []string {
			other := &script{run: "other"}
			return []string{s.item("1", "Mine"), rows(other.row("assistant", said("Theirs")), fields{"role": "user", "content": "Mine too"}), s.chat("final", "", nil)}
		}, []string{`text "Mine"`}},
		{"a run that has ended", func(s *script) []string {
			return []string{s.item("1", "Mine"), s.chat("final", "Mine", nil), rows(s.row("assistant", said("Mine and more")))}
		}, []string{`text "Mine"`}},
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

// The text before a tool may arrive only as a preamble; usually the preamble repeats text that was shown.
func TestPreamble(t *testing.T) {
	preamble := func(s *script, id, text string) string {
		return s.agent("item", fields{"kind": "preamble", "phase": "end", "itemId": id, "progressText": text})
	}
	for _, tt := range []struct {
		name   string
		frames func(*script) []string
		want   []string
	}{
		{"a repetition", func(s *script) []string {
			return []string{s.item("1", "Look."), preamble(s, "c1", "Look.")}
		}, []string{`text "Look."`}},
		{"all that there is", func(s *script) []string {
			return []string{preamble(s, "c1", "Look."), preamble(s, "c2", "Again."), s.item("3", "Done.")}
		}, []string{`text "Look."`, `text "Again."`, `text "Done."`}},
		{"the rest", func(s *script) []string {
			return []string{s.item("1", "Lo"), preamble(s, "c1", "Look.")}
		}, []string{`text "Look."`}},
		{"the same words twice", func(s *script) []string {
			return []string{s.item("1", "Look."), preamble(s, "c1", "Look."), preamble(s, "c2", "Look.")}
		}, []string{`text "Look."`, `text "Look."`}},
		{"before its frame", func(s *script) []string {
			return []string{preamble(s, "c1", "Look."), s.item("1", "Look.")}
		}, []string{`text "Look."`}},
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
