package openclaw

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// Sentences that the recorded agent's model was scripted to say.
const (
	fox   = "The quick brown fox jumps over the lazy dog while seven wizards quietly mix strong potions behind a large oak tree near the river bank."
	hello = "Hello! This is a plain streamed answer with several words, so that the throttle can be seen clearly in the recorded frames."
	three = "First segment before tool one.\n\nSecond segment between tools.\n\nThird segment, the final answer."
	ran   = "Let me run that command for you.\n\nThe command printed hello-from-tool and then done. All finished."
)

func counted(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString("t")
		b.WriteString(strconv.Itoa(i))
	}
	return b.String()
}

func foxes(n int) string { return strings.TrimSpace(strings.Repeat(fox+" ", n)) }

// recordings are the files in testdata, with the final text that viewers must have seen.
var recordings = []struct {
	version, name, client string
	visible               string // of the first run
	outcome               event.Outcome
	reason                string
	cut                   bool
}{
	{version: "2026.2.3", name: "abort", visible: fox[:71], outcome: event.Cancelled, reason: "rpc"},
	{version: "2026.2.3", name: "fast", visible: counted(300), outcome: event.Completed},
	{version: "2026.2.3", name: "handshake", cut: true},
	{version: "2026.2.3", name: "media", visible: "Here is the picture you asked for.\nAnd that was it.", outcome: event.Completed},
	{version: "2026.2.3", name: "multi", visible: three, outcome: event.Completed},
	{version: "2026.2.3", name: "plain", visible: hello, outcome: event.Completed},
	{version: "2026.2.3", name: "restart-SIGKILL", client: "A", visible: fox[:97], cut: true},
	{version: "2026.2.3", name: "restart-SIGKILL", client: "B", cut: true},
	{version: "2026.2.3", name: "think", visible: "My answer after thinking is forty two.", outcome: event.Completed},
	{version: "2026.2.3", name: "tool", visible: ran, outcome: event.Completed},
	{version: "2026.2.3", name: "verbosefull", visible: ran, outcome: event.Completed},

	{version: "2026.9.6", name: "abort", visible: fox[:71], outcome: event.Cancelled, reason: "rpc"},
	{version: "2026.9.6", name: "busy", visible: foxes(12) + "\n\n" + hello, outcome: event.Completed, reason: "stop"},
	{version: "2026.9.6", name: "errmid", visible: "This answer will be cut in the middle of", outcome: event.Failed},
	{version: "2026.9.6", name: "handshake", cut: true},
	{version: "2026.9.6", name: "media", visible: "Here is the picture you asked for.\nAnd that was it.", outcome: event.Completed, reason: "stop"},
	{version: "2026.9.6", name: "multi", visible: three, outcome: event.Completed, reason: "stop"},
	{version: "2026.9.6", name: "noreply", outcome: event.Completed, reason: "silent"},
	{version: "2026.9.6", name: "par", visible: "Both tools returned.", outcome: event.Completed, reason: "stop"},
	{version: "2026.9.6", name: "plain", visible: hello, outcome: event.Completed, reason: "stop"},
	{version: "2026.9.6", name: "reconnect", client: "A", visible: fox[:114], cut: true},
	{version: "2026.9.6", name: "reconnect", client: "B", visible: foxes(12), outcome: event.Completed, reason: "stop"},
	{version: "2026.9.6", name: "restart-SIGKILL", client: "A", visible: fox[:97], cut: true},
	{version: "2026.9.6", name: "restart-SIGKILL", client: "B", visible: foxes(7) + " The", cut: true},
	{version: "2026.9.6", name: "think", visible: "My answer after thinking is forty two.", outcome: event.Completed, reason: "stop"},
	{version: "2026.9.6", name: "tool", visible: ran, outcome: event.Completed, reason: "stop"},
	{version: "2026.9.6", name: "uni", visible: "Family: 👨\u200d👩\u200d👧\u200d👦 flag 🇩🇪 日本語のテキスト e\u0301 اللغة end.", outcome: event.Completed, reason: "stop"},
}

func TestRecordings(t *testing.T) {
	for _, rec := range recordings {
		t.Run(rec.version+"/"+rec.name+rec.client, func(t *testing.T) {
			f, d := newFolder(t), Dialect().Decoder()
			f.decode(d, frames(t, rec.version, rec.name, rec.client))
			ops, err := d.Close()
			f.apply(ops)
			if cut := errors.Is(err, dialect.ErrCutShort); cut != rec.cut || err != nil && !cut {
				t.Errorf("Close: %v", err)
			}
			if len(f.Tr.Turns) == 0 {
				if rec.visible != "" || rec.outcome != "" {
					t.Fatal("no run")
				}
				return
			}
			turn := f.Tr.Turns[0]
			if got := f.Tr.Visible(turn.ID); got != rec.visible {
				t.Errorf("visible:\n got %q\nwant %q", got, rec.visible)
			}
			if turn.Outcome != rec.outcome || turn.Reason != rec.reason {
				t.Errorf("outcome %q, reason %q, want %q and %q", turn.Outcome, turn.Reason, rec.outcome, rec.reason)
			}
			if turn.Upstream == nil || turn.Upstream.Run != turn.ID {
				t.Errorf("upstream %+v", turn.Upstream)
			}
		})
	}
}

// The visible text during a run only grows unless the agent retracts it, has no duplicates and contains no control syntax.
func TestOnTheWay(t *testing.T) {
	for _, rec := range recordings {
		t.Run(rec.version+"/"+rec.name+rec.client, func(t *testing.T) {
			f, shown, retracted := newFolder(t), "", 0
			f.each = func(tr *transcript.Transcript, e *event.Event) {
				if len(tr.Messages) == 0 {
					return
				}
				if e.Type == event.PartReplace {
					retracted++
					shown = ""
				}
				now := tr.Messages[0].Visible()
				if !strings.HasPrefix(now, shown) || !strings.HasPrefix(rec.visible, now) {
					t.Fatalf("%q after %q", now, shown)
				}
				for _, part := range tr.Messages[0].Parts {
					if part.Media != nil && part.Media.URL != "/srv/agent/files/media/ws/pic.png" {
						t.Fatalf("media %q", part.Media.URL)
					}
				}
				shown = now
			}
			f.decode(Dialect().Decoder(), frames(t, rec.version, rec.name, rec.client))
			want := 0
			switch {
			case rec.name == "errmid":
				want = 7
			case rec.name == "media" && rec.version == "2026.9.6":
				want = 1 // what stands behind the picture goes behind it
			}
			if retracted != want {
				t.Errorf("%d retractions, want %d", retracted, want)
			}
		})
	}
}

func TestParts(t *testing.T) {
	const (
		echoes = `{"command":"echo hello-from-tool; sleep 1; echo step2; sleep 1; echo done"}`
		output = `"hello-from-tool\nstep2\ndone\n"`
	)
	let, the, _ := strings.Cut(ran, "\n\n")
	seg := strings.Split(three, "\n\n")
	text := func(s string) string { return fmt.Sprintf("text %q", s) }
	tests := []struct {
		version, name string
		want          []string
	}{
		{"2026.2.3", "multi", []string{
			text(seg[0]), `tool exec "echo one" done in={"command":"echo one"} out=""`, text(seg[1]), `tool exec "echo two" done in={"command":"echo two"} out=""`, text(seg[2]),
		}},
		{"2026.9.6", "multi", []string{
			text(seg[0]), `tool exec "print text" done in={"command":"echo one"} out="one\n"`, text(seg[1]), `tool exec "print text" done in={"command":"echo two"} out="two\n"`, text(seg[2]),
		}},
		{"2026.2.3", "tool", []string{text(let), `tool exec "echo hello-from-tool; sleep 1; echo step2; sleep 1; echo done" done in=` + echoes + ` out=""`, text(the)}},
		{"2026.2.3", "verbosefull", []string{text(let), `tool exec "echo hello-from-tool; sleep 1; echo step2; sleep 1; echo done" done in=` + echoes + ` out=` + output, text(the)}},
		{"2026.9.6", "tool", []string{text(let), `tool exec "print text → run sleep 1 → print text → run sleep 1 → print text" done in=` + echoes + ` out=` + output, text(the)}},
		{"2026.9.6", "par", []string{
			`tool exec "run sleep 1 → print text" done in={"command":"sleep 1; echo A"} out="A\n"`, `tool exec "print text" done in={"command":"echo B"} out="B\n"`, text("Both tools returned."),
		}},
		{"2026.9.6", "think", []string{`reasoning "First I consider the question, then I weigh options, and then I decide."`, text("My answer after thinking is forty two.")}},
		{"2026.2.3", "media", []string{text("Here is the picture you asked for.\n"), "media /srv/agent/files/media/ws/pic.png", text("And that was it.")}},
		{"2026.9.6", "media", []string{text("Here is the picture you asked for.\n"), "media /srv/agent/files/media/ws/pic.png", text("And that was it.")}},
		{"2026.9.6", "noreply", nil},
		{"2026.9.6", "errmid", []string{text(""), text(""), text(""), text(""), text(""), text(""), text(""), text("This answer will be cut in the middle of")}},
	}
	for _, tt := range tests {
		t.Run(tt.version+"/"+tt.name, func(t *testing.T) {
			f := newFolder(t)
			f.decode(Dialect().Decoder(), frames(t, tt.version, tt.name, ""))
			if diff := cmp.Diff(tt.want, parts(f.Tr.Message(f.Tr.Turns[0].ID))); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFailedRun(t *testing.T) {
	f := newFolder(t)
	f.decode(Dialect().Decoder(), frames(t, "2026.9.6", "errmid", ""))
	turn := f.Tr.Turns[0]
	want := &event.Error{Code: "timeout", Message: "LLM request timed out.", Retryable: true}
	if diff := cmp.Diff(want, turn.Error); diff != "" || len(f.Tr.Turns) != 1 {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

func TestBusySession(t *testing.T) {
	f := newFolder(t)
	f.decode(Dialect().Decoder(), frames(t, "2026.9.6", "busy", ""))
	if len(f.Tr.Turns) != 2 || len(f.Tr.Messages) != 1 {
		t.Fatalf("%d runs with %d messages", len(f.Tr.Turns), len(f.Tr.Messages))
	}
	if steered := f.Tr.Turns[1]; steered.Outcome != event.Completed || f.Tr.Visible(steered.ID) != "" {
		t.Errorf("the run that the other absorbed: %s, %q", steered.Outcome, f.Tr.Visible(steered.ID))
	}
}
