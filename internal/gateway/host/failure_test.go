//go:build unix

package host_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/leat-dev/leat/agent/plugin"
	"github.com/leat-dev/leat/internal/gateway/host"
)

// failure waits for the next report of a failed delivery.
func (h *harness) failure() host.Failure {
	h.t.Helper()
	select {
	case f := <-h.failures:
		return f
	case <-time.After(time.Minute):
		h.t.Fatal("no failure was reported")
	}
	return host.Failure{}
}

// A delivery that the channel gives up is counted, shown, and reported if the chat has a conversation. An invalid line ends the process.
func TestFailedDeliveries(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, "pigeon")
	h := newHarness(t, newJournal(t), agentFunc(echo), p)
	a := p.next()
	if list := h.host.Signals(); len(list) > 0 {
		t.Errorf("signals: %q", list)
	}
	id := h.create(carol)
	h.attach("pigeon", "42", id)
	a.want("open")
	a.send("u1", "42", "hello")
	s := &screen{t: t, a: a, chat: "42"}
	s.until(1)
	_, seq, _ := s.cursor.Parse()
	turn := s.fold.Turns[0].ID
	a.say(`{"type":"failed","chat":"7","error":"there is no such chat"}`)
	a.send("u2", "7", "hello") // lines of one chat are taken in order, so its answer shows that the failure is recorded
	for m := a.hear(); m.Type != "ack" || m.Chat != "7"; m = a.hear() {
		continue
	}
	a.say(`{"type":"failed","chat":"42","turn":%q,"error":"the bot was blocked","of a later version":{}}`, turn)
	got := h.failure()
	if got.Err.Error() != "the bot was blocked" {
		t.Errorf("the error is %q", got.Err)
	}
	want := host.Failure{Channel: "pigeon", Chat: "42", Turn: turn, Conversation: id, Tenant: "acme", Subject: "carol", Seq: seq, Err: got.Err}
	if got != want {
		t.Errorf("reported %+v, want %+v", got, want)
	}
	a.say(`{"type":"failed","chat":"42","error":"one\u0007\n%s","unknown":true}`, strings.Repeat("ü", 600))
	f := h.failure()
	text := f.Err.Error()
	if !f.IsUnknown || f.Turn != "" || !strings.HasPrefix(text, "possibly delivered: one  ü") {
		t.Errorf("reported %+v", f)
	}
	if len(text) > 1<<10 || !utf8.ValidString(text) || !strings.HasSuffix(text, "ü…") {
		t.Errorf("the error has %d bytes: %q", len(text), text)
	}
	check := func(failures int) {
		t.Helper()
		list, err := h.host.Channels(t.Context())
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		if c := list[0]; c.Name != "pigeon" || c.Failures != failures || c.LastFailure.Error() != text || c.FailedAt.IsZero() || c.Chats != 2 {
			t.Errorf("state: %+v", c)
		}
		if list := h.host.Signals(); len(list) != 1 || list[0] != "delivery.failed" {
			t.Errorf("signals: %q", list)
		}
	}
	check(3)
	if err := h.host.Run(p.p); err != nil { // another version
		t.Fatal(err)
	}
	check(3)
	p.next()
	h.host.Stop("pigeon")
	if list, err := h.host.Channels(t.Context()); err != nil || len(list) > 0 || len(h.host.Signals()) > 0 {
		t.Errorf("after the plugin was removed: %+v, %v", list, err)
	}
}

// What a channel declares is shown. Unknown capabilities are ignored, and without any it has none.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, "pigeon")
	h := newHarness(t, newJournal(t), agentFunc(echo), p)
	const ready = `{"type":"ready","protocol":1,"kind":"channel","capabilities":%s}`
	for declared, want := range map[string]plugin.Capabilities{
		`{"reactions":true,"idempotent":true,"holograms":{"3":"D"}}`: {Reactions: true, Idempotent: true},
		`null`: {},
		`{"fileUpload":true,"reactiveOnly":true}`: {FileUpload: true, ReactiveOnly: true},
	} {
		a := p.greeted(fmt.Sprintf(ready, declared))
		a.send("u1", "42", "hello") // the answer shows that the process is served
		for a.hear().Type != "ack" {
			continue
		}
		list, err := h.host.Channels(t.Context())
		if err != nil || len(list) != 1 || !list[0].IsReady || want != list[0].Capabilities {
			t.Errorf("%s: %+v, %v", declared, list, err)
		}
		a.cut()
	}
	a := p.greeted(fmt.Sprintf(ready, `{"reactions":"yes"}`))
	if last := a.stopped(); !strings.Contains(last.Message, "line 1 of the plugin's output: capabilities") {
		t.Errorf("invalid capabilities: %s", last.raw)
	}
}
