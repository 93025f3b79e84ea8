package openclaw

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

const (
	hello3 = `{"type":"res","id":"1","ok":true,"payload":{"type":"hello-ok","protocol":3}}`
	hello4 = `{"type":"res","id":"1","ok":true,"payload":{"type":"hello-ok","protocol":4}}`
)

// script generates the frames of one run in one session.
type script struct {
	run, session string
	seq          int
	said         string // protocol 3: the raw text of the segment so far
}

func (s *script) agent(stream string, data any) string {
	s.seq++
	b, err := json.Marshal(map[string]any{"type": "event", "event": "agent", "payload": map[string]any{
		"runId": s.run, "stream": stream, "data": data, "sessionKey": s.session, "seq": s.seq, "ts": 1,
	}})
	if err != nil {
		panic(err)
	}
	return string(b)
}

type fields map[string]any

// say is a protocol 3 delta of the segment at hand.
func (s *script) say(delta string) string {
	s.said += delta
	return s.agent("assistant", fields{"text": s.said, "delta": delta})
}

// item is a protocol 4 snapshot.
func (s *script) item(id, text string) string {
	return s.agent("assistant", fields{"text": text, "delta": "?", "itemId": id})
}

func (s *script) tool(phase, call string, more fields) string {
	s.said = ""
	f := fields{"phase": phase, "name": "exec", "toolCallId": call}
	for k, v := range more {
		f[k] = v
	}
	return s.agent("tool", f)
}

func (s *script) chat(state, text string, more fields) string {
	p := fields{"runId": s.run, "sessionKey": s.session, "seq": s.seq, "state": state}
	if text != "" {
		p["message"] = fields{"role": "assistant", "content": []fields{{"type": "text", "text": text}}}
	}
	for k, v := range more {
		p[k] = v
	}
	b, err := json.Marshal(fields{"type": "event", "event": "chat", "payload": p})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func texts(v string) fields {
	return fields{"content": []fields{{"type": "text", "text": v}}}
}

func ready(session string) *script { return &script{run: "run-" + session, session: session} }

// play decodes frames and returns how the stream closed.
func play(t testing.TB, lines ...string) (*folder, error) {
	t.Helper()
	f, d := newFolder(t), Dialect().Decoder()
	f.decode(d, bytesOf(lines))
	ops, err := d.Close()
	f.apply(ops)
	return f, err
}

// brief describes a part in one line.
func brief(p *transcript.Part) string {
	s := string(p.Kind)
	switch p.Kind {
	case event.KindTool:
		s = fmt.Sprintf("tool %s %q %s in=%s out=%q", p.Name, p.Title, p.State, p.Text(event.Input), p.Text(event.Output))
	case event.KindMedia:
		s += " " + p.Media.URL
	default:
		s += fmt.Sprintf(" %q", p.Text(event.Text))
	}
	return s
}

func parts(m *transcript.Message) (all []string) {
	if m == nil {
		return nil
	}
	for _, p := range m.Parts {
		all = append(all, brief(p))
	}
	return all
}

func TestText(t *testing.T) {
	r := ready("s")
	const done = event.Completed
	tests := []struct {
		name   string
		frames func(*script) []string
		want   []string // parts
		end    event.Outcome
	}{
		{"3: a text that does not go on is a new segment", func(s *script) []string {
			return []string{
				hello3, s.say("Let me "), s.say("see."),
				s.agent("assistant", fields{"text": "It is", "delta": "It is"}),
				s.agent("assistant", fields{"text": "It is done.", "delta": " done."}), s.chat("final", "It is done.", nil),
			}
		}, []string{`text "Let me see."`, `text "It is done."`}, done},
		{"3: a new segment may begin with the words of the one before", func(s *script) []string {
			return []string{hello3, s.say("I"), s.agent("assistant", fields{"text": "I think", "delta": "I think"}), s.chat("final", "I think", nil)}
		}, []string{`text "I"`, `text "I think"`}, done},
		{"3: equal segments around a tool are two", func(s *script) []string {
			return []string{hello3, s.say("Done."), s.tool("start", "c", nil), s.tool("result", "c", nil), s.say("Done."), s.chat("final", "Done.", nil)}
		}, []string{`text "Done."`, `tool exec "" done in= out=""`, `text "Done."`}, done},
		{"3: a late joiner gets all of the segment", func(s *script) []string {
			return []string{s.agent("assistant", fields{"text": "One two three", "delta": " three"}), s.chat("final", "One two three", nil)}
		}, []string{`text "One two three"`}, done},
		{"3: a lost frame is healed by the next", func(s *script) []string {
			return []string{s.say("One"), s.agent("assistant", fields{"text": "One two three", "delta": " three"}), s.chat("final", "One two three", nil)}
		}, []string{`text "One two three"`}, done},
		{"3: the final brings what the last frame lacked", func(s *script) []string {
			return []string{s.say("One"), s.chat("final", "One two.", nil)}
		}, []string{`text "One two."`}, done},
		{"3: a trimmed final changes nothing", func(s *script) []string {
			return []string{s.say("One "), s.say("two. "), s.chat("final", "One two.", nil)}
		}, []string{`text "One two. "`}, done},
		{"3: a final that folds blank lines still brings the rest", func(s *script) []string {
			return []string{s.say("One.\n\nTwo."), s.chat("final", "One.\nTwo.\nThree.", nil)}
		}, []string{`text "One.\n\nTwo.\nThree."`}, done},
		{"3: a final of other words changes nothing", func(s *script) []string {
			return []string{s.say("One."), s.chat("final", "Two.", nil)}
		}, []string{`text "One."`}, done},
		{"3: a final of a segment that was not seen", func(s *script) []string {
			return []string{s.say("Before."), s.tool("start", "c", nil), s.tool("result", "c", nil), s.chat("final", "After.", nil)}
		}, []string{`text "Before."`, `tool exec "" done in= out=""`, `text "After."`}, done},
		{"3: a final that repeats the segment before the tool", func(s *script) []string {
			return []string{s.say("Before. "), s.tool("start", "c", nil), s.tool("result", "c", nil), s.chat("final", "Before.", nil)}
		}, []string{`text "Before. "`, `tool exec "" done in= out=""`}, done},
		{"3: nothing but a final", func(s *script) []string {
			return []string{s.chat("final", "Done.", nil)}
		}, []string{`text "Done."`}, done},
		{"3: a final adds no second space", func(s *script) []string {
			return []string{s.say("One "), s.chat("final", "One two", nil)}
		}, []string{`text "One two"`}, done},
		{"3: what was held back when the run was stopped is text", func(s *script) []string {
			return []string{s.say("Yes\nNO"), s.chat("aborted", "", fields{"stopReason": "rpc"})}
		}, []string{`text "Yes\nNO"`}, event.Cancelled},
		{"a segment without a name may be retracted", func(s *script) []string {
			return []string{s.say("Bad"), s.agent("assistant", fields{"text": "", "delta": "", "replace": true}), s.chat("final", "", nil)}
		}, []string{`text ""`}, done},
		{"4: nor is a segment without a name screened", func(s *script) []string {
			return []string{hello4, s.say("See\nMEDIA:/a/b\nNO"), s.chat("final", "See\nMEDIA:/a/b\nNO", nil)}
		}, []string{`text "See\nMEDIA:/a/b\nNO"`}, done},
		{"reasoning may begin with the words of the one before", func(s *script) []string {
			return []string{s.agent("thinking", fields{"text": "I", "delta": "I"}), s.agent("thinking", fields{"text": "I do", "delta": "I do"}), s.chat("final", "", nil)}
		}, []string{`reasoning "I"`, `reasoning "I do"`}, done},
		{"an empty final", func(s *script) []string { return []string{s.chat("final", "", nil)} }, nil, done},
		{"4: segments by their ids, in any order", func(s *script) []string {
			return []string{hello4, s.item("a:1", "One"), s.item("a:2", "Two"), s.item("a:1", "One."), s.item("a:2", "Two."), s.chat("final", "One.\n\nTwo.", nil)}
		}, []string{`text "One."`, `text "Two."`}, done},
		{"4: a shorter snapshot replaces", func(s *script) []string {
			return []string{s.item("a:1", "One two"), s.item("a:1", "One"), s.chat("final", "One", nil)}
		}, []string{`text "One"`}, done},
		{"4: a retracted segment goes, and may come again", func(s *script) []string {
			return []string{
				s.item("a:1", "Bad"), s.agent("assistant", fields{"itemId": "a:1", "text": "", "delta": "", "replace": true}),
				s.item("b:1", "Good"), s.chat("final", "Good", nil),
			}
		}, []string{`text ""`, `text "Good"`}, done},
		{"4: the final brings a tail, a segment between and one at the end", func(s *script) []string {
			return []string{
				s.item("a:1", "One"), s.item("a:3", "Three"),
				s.chat("final", "One and a half.\n\nTwo.\n\nThree.\n\nFour.", nil),
			}
		}, []string{`text "One and a half.\n\nTwo."`, `text "Three.\n\nFour."`}, done},
		{"4: the final brings what was before the first frame", func(s *script) []string {
			return []string{s.item("a:2", "Two"), s.chat("final", "One.\n\nTwo.", nil)}
		}, []string{`text "One.\n\nTwo."`}, done},
		{"4: a final without a segment that was shown takes nothing back", func(s *script) []string {
			return []string{s.item("a:1", "One."), s.item("a:2", "Two."), s.chat("final", "Two.", nil)}
		}, []string{`text "One."`, `text "Two."`}, done},
		{"4: a frame without text takes nothing back", func(s *script) []string {
			return []string{
				s.item("a:1", "One."), s.agent("assistant", fields{"itemId": "a:1", "text": "", "delta": "", "mediaUrls": []string{"/p"}}),
				s.agent("assistant", fields{"itemId": "a:1", "text": nil, "replace": true}), s.chat("final", "One.", nil),
			}
		}, []string{`text "One."`, "media /p"}, done},
		{"3: a text that goes on over a tool is one segment", func(s *script) []string {
			return []string{
				s.say("One"), s.tool("start", "c", nil), s.tool("result", "c", nil),
				s.agent("assistant", fields{"text": "One two", "delta": " two"}), s.chat("final", "One two three", nil),
			}
		}, []string{`text "One two three"`, `tool exec "" done in= out=""`}, done},
		{"4: control syntax in the text is text", func(s *script) []string {
			return []string{s.item("a:1", "if [[ -f x ]]\nMEDIA:"), s.chat("final", "if [[ -f x ]]\nMEDIA:", nil)}
		}, []string{`text "if [[ -f x ]]\nMEDIA:"`}, done},
		{"4: the message of an abort is all of the text", func(s *script) []string {
			return []string{s.item("a:1", "One"), s.chat("aborted", "One two", fields{"stopReason": "rpc"})}
		}, []string{`text "One two"`}, event.Cancelled},
		{"repeats of agent frames are ignored", func(s *script) []string {
			one, two := s.item("a:1", "One"), s.item("a:1", "One two")
			return []string{one, two, one, two, s.chat("final", "One two", nil)}
		}, []string{`text "One two"`}, done},
		{"reasoning is anew after each message", func(s *script) []string {
			return []string{
				s.agent("thinking", fields{"text": "Hm", "delta": "Hm"}), s.agent("thinking", fields{"text": "Hm, so", "delta": ", so"}),
				s.item("a:1", "First."), s.agent("thinking", fields{"text": "Now", "delta": "Now"}), s.item("a:2", "Last."), s.chat("final", "First.\n\nLast.", nil),
			}
		}, []string{`reasoning "Hm, so"`, `text "First."`, `reasoning "Now"`, `text "Last."`}, done},
		{"half a surrogate pair waits for the other", func(s *script) []string {
			frame := func(text string) string {
				return strings.Replace(s.item("a:1", "TEXT"), "TEXT", text, 1)
			}
			return []string{frame(`Hi \ud83d`), frame(`Hi \ud83d\ude00`), frame(`Hi \ud83d\ude00 \\ud83d`), s.chat("final", "", nil)}
		}, []string{`text "Hi 😀 \\ud83d"`}, done},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := *r
			f, err := play(t, tt.frames(&s)...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, parts(f.Tr.Message(s.run))); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
			replaced := 0
			if strings.Contains(tt.name, "replaces") || strings.Contains(tt.name, "retracted") || strings.Contains(tt.name, "before the first frame") {
				replaced = 1
			}
			if f.replaced != replaced || f.partEnds != len(tt.want) {
				t.Errorf("%d replaces, want %d; %d parts ended, want all %d", f.replaced, replaced, f.partEnds, len(tt.want))
			}
			if got := f.Tr.Turns[0].Outcome; got != tt.end {
				t.Errorf("outcome %q, want %q", got, tt.end)
			}
			if len(f.Tr.Messages) > 0 && (!f.Tr.Messages[0].Final || f.Tr.Messages[0].Role != event.Assistant) {
				t.Errorf("message %+v", f.Tr.Messages[0])
			}
		})
	}
}

func TestTools(t *testing.T) {
	tests := []struct {
		name   string
		frames func(*script) []string
		want   []string
	}{
		{"output grows, and its trimmed result takes nothing back", func(s *script) []string {
			return []string{
				s.tool("start", "c", fields{"args": fields{"command": "ls"}}), s.tool("update", "c", fields{"partialResult": texts("a\n")}),
				s.tool("update", "c", fields{"partialResult": texts("a\nb\n")}), s.tool("result", "c", fields{"meta": "list", "result": texts("a\nb")}),
			}
		}, []string{`tool exec "list" done in={"command":"ls"} out="a\nb\n"`}},
		{"a result may differ from what was shown", func(s *script) []string {
			return []string{s.tool("start", "c", nil), s.tool("update", "c", fields{"partialResult": texts("working")}), s.tool("result", "c", fields{"result": texts("42")})}
		}, []string{`tool exec "" done in= out="42"`}},
		{"a failure", func(s *script) []string {
			return []string{s.tool("start", "c", nil), s.tool("result", "c", fields{"isError": true, "result": texts("no such file")})}
		}, []string{`tool exec "" failed in= out="no such file"`}},
		{"a failure stays one", func(s *script) []string {
			return []string{s.tool("start", "c", nil), s.tool("result", "c", fields{"isError": true}), s.agent("item", fields{"itemId": "tool:c", "kind": "tool", "status": "completed"})}
		}, []string{`tool exec "" failed in= out=""`}},
		{"command_output only repeats what tool frames bring", func(s *script) []string {
			return []string{
				s.agent("item", fields{"itemId": "tool:c", "toolCallId": "c", "kind": "tool", "phase": "start", "title": "Exec list", "meta": "list", "status": "running", "name": "exec"}),
				s.tool("start", "c", nil), s.agent("command_output", fields{"itemId": "command:c", "phase": "delta", "output": "a"}),
				s.tool("update", "c", fields{"partialResult": texts("a\n")}), s.tool("result", "c", fields{"result": texts("a")}),
				s.agent("command_output", fields{"itemId": "command:c", "phase": "end", "output": "a", "title": "command list"}),
				s.agent("item", fields{"itemId": "tool:c", "kind": "tool", "phase": "end", "status": "completed", "meta": "list"}),
			}
		}, []string{`tool exec "list" done in= out="a\n"`}},
		{"item and command_output are all that other clients get", func(s *script) []string {
			return []string{
				s.agent("item", fields{"itemId": "tool:c", "kind": "tool", "phase": "start", "title": "Exec", "status": "running", "name": "exec"}),
				s.agent("command_output", fields{"itemId": "command:c", "phase": "delta", "output": "a\nb"}),
				s.agent("item", fields{"itemId": "tool:c", "kind": "tool", "phase": "end", "status": "failed", "title": "Exec", "error": "exit 1"}),
				s.agent("command_output", fields{"itemId": "command:c", "phase": "end", "output": "a\nb\nc"}),
			}
		}, []string{`tool exec "Exec" failed in= out="a\nb\nc"`}},
		{"a result after the item's end still counts", func(s *script) []string {
			return []string{
				s.tool("start", "c", nil), s.agent("item", fields{"itemId": "tool:c", "kind": "tool", "phase": "end", "status": "completed"}),
				s.tool("result", "c", fields{"result": texts("42")}), s.tool("result", "c", fields{"result": texts("43")}),
			}
		}, []string{`tool exec "" done in= out="42"`}},
		{"preambles repeat the text", func(s *script) []string {
			return []string{s.item("a:1", "Wait."), s.agent("item", fields{"kind": "preamble", "phase": "update", "progressText": "Wait.", "itemId": "commentary-0"})}
		}, []string{`text "Wait."`}},
		{"a tool that never returned failed with its turn", func(s *script) []string {
			return []string{s.tool("start", "c", nil)}
		}, []string{`tool exec "" failed in= out=""`}},
		{"text held back stays before the tool", func(s *script) []string {
			return []string{hello3, s.say("NO"), s.tool("start", "c", nil), s.tool("result", "c", nil)}
		}, []string{`text "NO"`, `tool exec "" done in= out=""`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := ready("s")
			f, err := play(t, append(tt.frames(s), s.chat("final", "", nil))...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, parts(f.Tr.Message(s.run))); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEnds(t *testing.T) {
	life := func(s *script, data fields) string { return s.agent("lifecycle", data) }
	tests := []struct {
		name   string
		frames func(*script) []string
		want   event.Body
	}{
		{
			"length", func(s *script) []string { return []string{s.chat("final", "Too lo", fields{"stopReason": "length"})} },
			event.Body{Outcome: event.Completed, Reason: "length"},
		},
		{"usage of the final", func(s *script) []string {
			return []string{
				life(s, fields{"phase": "model", "provider": "p", "model": "late"}), life(s, fields{"phase": "start"}), life(s, fields{"phase": "model", "model": "m"}),
				s.agent("usage", fields{"outputTokens": 7}), s.chat("final", "x", fields{"usage": fields{"input": 3, "output": 8, "cacheRead": 1, "cacheWrite": 2, "totalTokens": 14}}),
			}
		}, event.Body{Outcome: event.Completed, Usage: &event.Usage{Model: "m", Input: 3, Output: 8, CacheRead: 1, CacheWrite: 2}}},
		{"usage of agent frames is a total", func(s *script) []string {
			return []string{life(s, fields{"phase": "start"}), s.agent("usage", fields{"outputTokens": 50}), s.agent("usage", fields{"outputTokens": 100}), s.chat("final", "x", nil)}
		}, event.Body{Outcome: event.Completed, Usage: &event.Usage{Output: 100}}},
		{"rate limit", func(s *script) []string {
			return []string{s.chat("error", "", fields{"errorMessage": "slow down", "errorKind": "rate_limit"})}
		}, event.Body{Outcome: event.Failed, Error: &event.Error{Code: "rate_limit", Message: "slow down", Retryable: true}}},
		{"refusal", func(s *script) []string {
			return []string{s.chat("error", "", fields{"errorMessage": "no", "errorKind": "refusal"})}
		}, event.Body{Outcome: event.Failed, Error: &event.Error{Code: "refusal", Message: "no"}}},
		{"why another model would be tried, where there is no kind", func(s *script) []string {
			return []string{s.chat("error", "", fields{"errorMessage": "no", "errorKind": "unknown", "errorDetail": fields{"provider": "p", "failoverReason": "billing"}})}
		}, event.Body{Outcome: event.Failed, Error: &event.Error{Code: "billing", Message: "no"}}},
		{"a request that the provider does not take", func(s *script) []string {
			return []string{s.chat("error", "", fields{"errorMessage": "no", "errorDetail": fields{"failoverReason": "format", "httpStatus": 400}})}
		}, event.Body{Outcome: event.Failed, Error: &event.Error{Code: "invalid_request", Message: "no"}}},
		{"a kind says more than why another model would be tried", func(s *script) []string {
			return []string{s.chat("error", "", fields{"errorMessage": "no", "errorKind": "refusal", "errorDetail": fields{"failoverReason": "format"}})}
		}, event.Body{Outcome: event.Failed, Error: &event.Error{Code: "refusal", Message: "no"}}},
		{"an error without words has the lifecycle's", func(s *script) []string {
			return []string{life(s, fields{"phase": "start"}), life(s, fields{"phase": "error", "error": "boom"}), s.chat("error", "", nil)}
		}, event.Body{Outcome: event.Failed, Error: &event.Error{Code: "unknown", Message: "boom"}}},
		{"the first end counts", func(s *script) []string {
			return []string{
				s.chat("error", "", fields{"errorMessage": "first", "errorKind": "timeout"}), s.chat("error", "", fields{"errorMessage": "second"}),
				s.item("a:1", "late"), s.chat("final", "late", nil), life(s, fields{"phase": "model", "model": "late"}),
			}
		}, event.Body{Outcome: event.Failed, Error: &event.Error{Code: "timeout", Message: "first", Retryable: true}}},
		{"aborted by a person", func(s *script) []string {
			return []string{s.item("a:1", "x"), s.chat("aborted", "", fields{"stopReason": "rpc"}), life(s, fields{"phase": "end", "aborted": true})}
		}, event.Body{Outcome: event.Cancelled, Reason: "rpc"}},
		{"aborted since the model was silent", func(s *script) []string {
			return []string{life(s, fields{"phase": "start"}), life(s, fields{"phase": "error", "error": "none", "terminalReply": fields{"disposition": "silent"}}), s.chat("aborted", "", fields{"stopReason": "stop"})}
		}, event.Body{Outcome: event.Completed, Reason: "silent"}},
		{"aborted since the model's answer was empty", func(s *script) []string {
			return []string{life(s, fields{"phase": "start"}), life(s, fields{"phase": "error", "error": "nothing came", "terminalReply": fields{"disposition": "empty"}}), s.chat("aborted", "", fields{"stopReason": "stop"})}
		}, event.Body{Outcome: event.Failed, Error: &event.Error{Code: "empty", Message: "nothing came"}}},
		{"NO_REPLY on protocol 3", func(s *script) []string {
			return []string{hello3, s.say("NO"), s.say("_REPLY"), s.chat("final", "NO_REPLY", nil)}
		}, event.Body{Outcome: event.Completed, Reason: "silent"}},
		{"NO_REPLY on protocol 3, of which the gateway kept the end to itself", func(s *script) []string {
			return []string{hello3, s.say("NO"), s.chat("final", "", nil)}
		}, event.Body{Outcome: event.Completed, Reason: "silent"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := ready("s")
			var ends []event.Body
			f, d := newFolder(t), Dialect().Decoder()
			f.each = func(_ *transcript.Transcript, e *event.Event) {
				if e.Type == event.TurnEnd {
					ends = append(ends, *e.Body)
				}
			}
			for _, l := range tt.frames(s) {
				ops, err := d.Decode(dialect.Frame{Data: []byte(l)})
				if err != nil {
					t.Fatal(err)
				}
				f.apply(ops)
			}
			if diff := cmp.Diff([]event.Body{tt.want}, ends); diff != "" {
				t.Errorf("ends (-want +got):\n%s", diff)
			}
			if _, err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestProgress(t *testing.T) {
	s := ready("s")
	f, d := newFolder(t), Dialect().Decoder()
	var got []string
	f.each = func(_ *transcript.Transcript, e *event.Event) {
		if e.Type == event.TurnUpdate {
			got = append(got, e.Get().Phase+e.Get().Model)
			if e.Get().Upstream != nil {
				got = append(got, "run "+e.Get().Upstream.Run)
			}
		}
	}
	for _, l := range []string{
		`{"type":"res","id":"2","ok":true,"payload":{"runId":"run-s","status":"started"}}`,
		s.chat("status", "", fields{"phase": "starting_model"}), s.agent("run_status", fields{"phase": "starting_model"}),
		s.agent("lifecycle", fields{"phase": "start"}), s.agent("lifecycle", fields{"phase": "model", "provider": "p", "model": "m"}),
		s.agent("lifecycle", fields{"phase": "model", "provider": nil, "model": nil}), s.agent("lifecycle", fields{"phase": "model", "provider": "p", "model": "m"}), s.agent("run_status", fields{"phase": "retrying", "retryAttempt": 1}),
		s.agent("lifecycle", fields{"phase": "end"}),
	} {
		ops, err := d.Decode(dialect.Frame{Data: []byte(l)})
		if err != nil {
			t.Fatal(err)
		}
		f.apply(ops)
	}
	want := []string{"", "run run-s", "starting_model", "start", "m", "retrying"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("updates (-want +got):\n%s", diff)
	}
	if _, err := d.Close(); !errors.Is(err, dialect.ErrCutShort) {
		t.Errorf("the lifecycle's end alone ended the run: %v", err)
	}
}

func TestRuns(t *testing.T) {
	t.Run("a message for a busy session", func(t *testing.T) {
		a, b := ready("s"), &script{run: "other", session: "s"}
		f, err := play(t, a.item("a:1", "One"), b.chat("final", "", nil), a.item("a:1", "One two"), a.chat("final", "One two", nil))
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Tr.Turns) != 2 || len(f.Tr.Messages) != 1 || f.Tr.Visible("run-s") != "One two" || f.Tr.Turn("other").Outcome != event.Completed {
			t.Errorf("turns %d, messages %d, %q", len(f.Tr.Turns), len(f.Tr.Messages), f.Tr.Visible("run-s"))
		}
	})
	t.Run("other sessions are other conversations", func(t *testing.T) {
		a, b, sub := ready("s"), ready("elsewhere"), ready("s:sub")
		f, err := play(t, a.item("a:1", "One"), b.item("b:1", "Secret"), b.chat("final", "Secret", nil),
			sub.chat("status", "", fields{"phase": "starting_model", "spawnedBy": "s"}), sub.item("c:1", "Sub"), sub.chat("final", "Sub", nil), a.chat("final", "One", nil))
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Tr.Turns) != 2 || f.Tr.Visible("run-s") != "One" || f.Tr.Visible("run-s:sub") != "Sub" {
			t.Errorf("turns %d, %q, %q", len(f.Tr.Turns), f.Tr.Visible("run-s"), f.Tr.Visible("run-s:sub"))
		}
	})
	t.Run("the response tells which run, and its frames which session", func(t *testing.T) {
		a, b := ready("s"), ready("elsewhere")
		f, err := play(t, `{"type":"res","id":"2","ok":true,"payload":{"runId":"run-s","status":"started"}}`,
			b.item("b:1", "Secret"), a.item("a:1", "One"), b.chat("final", "Secret", nil), a.chat("final", "One", nil))
		if err != nil || len(f.Tr.Turns) != 1 || f.Tr.Visible("run-s") != "One" {
			t.Errorf("%v, %d turns, %q", err, len(f.Tr.Turns), f.Tr.Visible("run-s"))
		}
	})
	t.Run("what is left of an earlier run begins none", func(t *testing.T) {
		old := ready("s")
		old.run = "old"
		a := ready("s")
		f, err := play(t, old.agent("lifecycle", fields{"phase": "model", "model": "m"}), old.agent("lifecycle", fields{"phase": "error", "error": "aborted"}),
			old.agent("usage", fields{"outputTokens": 1}), a.item("a:1", "One"), a.chat("final", "One", nil))
		if err != nil || len(f.Tr.Turns) != 1 || f.Tr.Turns[0].ID != "run-s" {
			t.Errorf("%v, %d turns", err, len(f.Tr.Turns))
		}
	})
	t.Run("an injected message belongs to no run", func(t *testing.T) {
		a, inj := ready("s"), &script{run: "inject-17", session: "s"}
		note := inj.chat("final", "[note]\n\ninjected note", nil)
		f, err := play(t, note, a.item("a:1", "One"), note, a.chat("final", "One", nil))
		if err != nil {
			t.Fatal(err)
		}
		m := f.Tr.Message("inject-17")
		if len(f.Tr.Messages) != 2 || m == nil || m.Turn != "" || m.Source != "inject" || m.Visible() != "[note]\n\ninjected note" {
			t.Errorf("message %+v of %d", m, len(f.Tr.Messages))
		}
	})
	t.Run("an injected message is no end", func(t *testing.T) {
		inj := &script{run: "inject-17", session: "s"}
		if _, err := play(t, inj.chat("final", "note", nil)); !errors.Is(err, dialect.ErrCutShort) {
			t.Errorf("Close: %v", err)
		}
	})
	for _, status := range []string{"started", "in_flight", "ok"} {
		t.Run("accepted: "+status, func(t *testing.T) {
			f, err := play(t, `{"type":"res","id":"2","ok":true,"payload":{"runId":"r","status":"`+status+`"}}`)
			if !errors.Is(err, dialect.ErrCutShort) || len(f.Tr.Turns) != 1 || f.Tr.Turns[0].Upstream.Run != "r" {
				t.Errorf("Close: %v, %d turns", err, len(f.Tr.Turns))
			}
		})
	}
}

func TestUnknownFramesAreCounted(t *testing.T) {
	d := &decoder{}
	for _, l := range []string{
		`{"type":"event","event":"sessions.moved","payload":{}}`, `{"type":"push"}`, `{}`,
		`{"type":"event","event":"agent","payload":{"runId":"r","stream":"plan","data":{}}}`,
		`{"type":"event","event":"agent","payload":{"stream":"assistant","data":{"text":"whose?"}}}`,
		`{"type":"event","event":"agent","payload":{"runId":7,"stream":"assistant","data":{"text":"whose?"}}}`,
		`{"type":"event","event":"chat","payload":{"runId":"r","state":"paused"}}`, `{"type":"event","event":"chat","payload":null}`,
	} {
		ops, err := d.Decode(dialect.Frame{Data: []byte(l)})
		if err != nil || len(ops) != 0 {
			t.Errorf("%s: %v, %v", l, ops, err)
		}
	}
	want := dialect.Unknown{"sessions.moved": 1, "push": 1, "": 1, "agent plan": 1, "run without id": 2, "chat paused": 1, "chat ": 1}
	if diff := cmp.Diff(want, d.Unknown()); diff != "" {
		t.Errorf("unknown (-want +got):\n%s", diff)
	}
	for _, l := range []string{
		`{"type":"event","event":"tick","payload":{"ts":1}}`, `{"type":"event","event":"shutdown","payload":{"reason":"gateway stopping"}}`,
		`{"type":"res","id":"3","ok":false,"error":{"code":"UNAVAILABLE","message":"x"}}`, `{"type":"res","id":"3","ok":true,"payload":{"messages":[]}}`,
	} {
		if ops, err := d.Decode(dialect.Frame{Data: []byte(l)}); err != nil || len(ops) != 0 || len(d.Unknown()) != len(want) {
			t.Errorf("%s: %v, %v, %v", l, ops, err, d.Unknown())
		}
	}
}

func TestInvalidFrames(t *testing.T) {
	long := strings.Repeat("x", event.MaxID+1)
	for _, l := range []string{
		``, `x`, `[]`, `"x"`, `null`, `{`, `{"type":"event"}x`, `{"a":01}`, `{"a":"` + "\x01" + `"}`, `{"type":"event","event":"chat","payload":{"runId":"` + long + `","state":"final"}}`,
		`{"type":"event","event":"agent","payload":{"runId":"r","stream":"assistant","data":{"text":"x","itemId":"` + long + `"}}}`,
		`{"type":"event","event":"agent","payload":{"runId":"r","stream":"tool","data":{"phase":"start","toolCallId":"a\nb"}}}`,
	} {
		d := Dialect().Decoder()
		if _, err := d.Decode(dialect.Frame{Data: []byte(hello4)}); err != nil {
			t.Fatal(err)
		}
		ops, err := d.Decode(dialect.Frame{Data: []byte(l)})
		var de *dialect.Error
		if !errors.As(err, &de) || de.Dialect != "openclaw" || de.Frame != 2 || len(ops) != 0 {
			t.Errorf("%.60s: %v, %v", l, ops, err)
		}
		if _, again := d.Decode(dialect.Frame{Data: []byte(hello4)}); again == nil {
			t.Errorf("%.60s: the decoder goes on after its error", l)
		}
		if ops, err := d.Close(); len(ops) != 0 || !errors.Is(err, dialect.ErrCutShort) {
			t.Errorf("%.60s: Close after the error: %v, %v", l, ops, err)
		}
	}
}
