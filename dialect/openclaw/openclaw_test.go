package openclaw

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
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

// recordings are all that is in testdata, with what a reader must have seen at the end.
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
