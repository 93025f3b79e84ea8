package gateway_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/transcript"
)

// The agent's next input says how far the person has heard the answer before, and the transcript doesn't.
func TestHeard(t *testing.T) {
	const answer = "Grüße aus Köln. The second sentence is longer."
	for name, tt := range map[string]struct {
		heard    gateway.HeardMark // its turn is that of the answer
		listener gateway.Principal
		text     string
		between  string // a message whose answer comes after the mark
		want     string // before the text
	}{
		"a part":                {heard: gateway.HeardMark{Offset: 18}, listener: admin, want: `interrupted. The person heard it only up to: "Grüße aus Köln."]`},
		"within a character":    {heard: gateway.HeardMark{Offset: 3}, listener: admin, want: `only up to: "Gr"]`},
		"nothing":               {heard: gateway.HeardMark{}, listener: admin, want: `interrupted before the person heard any of it.]`},
		"all":                   {heard: gateway.HeardMark{Offset: len(answer), IsWhole: true}, listener: admin},
		"all, by the offset":    {heard: gateway.HeardMark{Offset: len(answer)}, listener: admin},
		"more than there is":    {heard: gateway.HeardMark{Offset: 1 << 40}, listener: admin},
		"by somebody else":      {heard: gateway.HeardMark{Offset: 3}, listener: alice},
		"before a command":      {heard: gateway.HeardMark{Offset: 3}, listener: admin, text: "/compact"},
		"before another answer": {heard: gateway.HeardMark{Offset: 3}, listener: admin, between: "hm?"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var inputs []agent.Input
				h := newTestGateway(t, nil, one(agentFunc(func(_ context.Context, in agent.Input, out *agent.Emitter) error {
					inputs = append(inputs, in)
					return out.Text(answer)
				})), nil)
				defer h.close()
				conv := h.create(alice)
				tt.heard.Turn = h.send(conv, "hi").Turn
				h.ended(conv, tt.heard.Turn)
				if err := h.MarkHeard(t.Context(), tt.listener, conv, tt.heard); err != nil {
					t.Fatal(err)
				}
				if tt.between != "" {
					h.ended(conv, h.send(conv, tt.between).Turn)
				}
				text := tt.text
				if text == "" {
					text = "what?"
				}
				ack := h.send(conv, text)
				h.ended(conv, ack.Turn)
				in := inputs[len(inputs)-1]
				note, ok := strings.CutSuffix(in.Message.Text, text)
				if !ok || !strings.Contains(note, tt.want) || (tt.want == "") != (note == "") {
					t.Errorf("the agent got %q", in.Message.Text)
				}
				if last := in.History[len(in.History)-1]; last.Role != event.Assistant || last.Text != answer {
					t.Errorf("the history has %+v", last)
				}
				err := h.ViewTranscript(t.Context(), alice, conv, func(tr *transcript.Transcript) bool {
					if m := tr.Message(ack.Message); m.Visible() != text {
						t.Errorf("the transcript has %q", m.Visible())
					}
					return true
				})
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A long answer is quoted by its end.
func TestHeardQuote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got string
		h := newTestGateway(t, nil, one(agentFunc(func(_ context.Context, in agent.Input, out *agent.Emitter) error {
			got = in.Message.Text
			return out.Text(strings.Repeat("Wörter ", 1000) + "end")
		})), nil)
		defer h.close()
		conv := h.create(alice)
		turn := h.send(conv, "hi").Turn
		h.ended(conv, turn)
		if err := h.MarkHeard(t.Context(), admin, conv, gateway.HeardMark{Turn: turn, Offset: 8 * 500}); err != nil {
			t.Fatal(err)
		}
		h.ended(conv, h.send(conv, "what?").Turn)
		if want := `up to: "…` + strings.TrimSpace(strings.Repeat("Wörter ", 15)) + `"]` + "\n\nwhat?"; !strings.HasSuffix(got, want) {
			t.Errorf("%q", got)
		}
	})
}

// Only readers mark what they have heard, and only turns of the conversation. A guest's mark goes with the guest's access.
func TestHeardAccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, one(agentFunc(func(_ context.Context, _ agent.Input, out *agent.Emitter) error { return out.Text("x") })), nil)
		defer h.close()
		conv, other := h.create(alice), h.create(alice)
		turn, foreign := h.send(conv, "hi").Turn, h.send(other, "hi").Turn
		h.ended(conv, turn)
		h.ended(other, foreign)
		mark := func(p gateway.Principal, mark gateway.HeardMark) error {
			return h.MarkHeard(t.Context(), p, conv, mark)
		}
		if err := mark(bob, gateway.HeardMark{Turn: turn}); err == nil {
			t.Error("a stranger marks")
		}
		for _, wrong := range []gateway.HeardMark{{Turn: foreign}, {Turn: "none"}, {}, {Turn: turn, Offset: -1}} {
			if err := mark(alice, wrong); err == nil {
				t.Errorf("%+v is accepted", wrong)
			}
		}
		h.do(conv, gateway.Command{Type: gateway.CommandShare, Subject: bob.Subject, Access: gateway.AccessRead})
		if err := mark(bob, gateway.HeardMark{Turn: turn}); err != nil {
			t.Error(err)
		}
		keys := func() int {
			list, err := h.journal.Keys(t.Context(), gateway.HeardPrefix)
			if err != nil {
				t.Error(err)
			}
			for _, kv := range list {
				if !gateway.HeardBy(kv.Key, bob.Tenant, bob.Subject) || gateway.HeardBy(kv.Key, "t2", bob.Subject) {
					t.Errorf("key %s", kv.Key)
				}
			}
			return len(list)
		}
		if n := keys(); n != 1 {
			t.Errorf("%d marks", n)
		}
		h.do(conv, gateway.Command{Type: gateway.CommandUnshare, Subject: bob.Subject})
		if n := keys(); n != 0 {
			t.Errorf("%d marks after the guest's access was revoked", n)
		}
	})
}

// Other readers are those of other users, as long as they read.
func TestOtherReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, nil, nil)
		defer h.close()
		conv := h.create(alice)
		h.do(conv, gateway.Command{Type: gateway.CommandShare, Subject: bob.Subject, Access: gateway.AccessRead})
		check := func(p gateway.Principal, want bool) {
			t.Helper()
			if got := h.HasOtherReaders(p, conv); got != want {
				t.Errorf("%s has other readers: %v", p.Subject, got)
			}
		}
		read := func(p gateway.Principal) *gateway.Reader {
			r, err := h.Feed(t.Context(), p, conv)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		check(alice, false)
		first, second := read(alice), read(alice)
		check(alice, false)
		check(bob, true)
		guest := read(bob)
		check(alice, true)
		first.Release()
		check(bob, true)
		second.Release()
		check(bob, false)
		guest.Release()
		check(alice, false)
		if _, err := h.Feed(t.Context(), gateway.Principal{Tenant: "t1", Subject: "carol"}, conv); err == nil || h.HasOtherReaders(alice, conv) {
			t.Error("somebody without access counts")
		}
	})
}
