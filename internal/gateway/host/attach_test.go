//go:build unix

package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/host"
)

var carol = gateway.Principal{Tenant: "acme", Subject: "carol"}

// create creates a conversation of a user, or of the operator.
func (h *harness) create(p gateway.Principal) string {
	h.t.Helper()
	s, _, err := h.gw.Create(h.t.Context(), p, gateway.CreateOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	return s.ID
}

// say sends a message of a principal to a conversation.
func (h *harness) say(p gateway.Principal, conversation, text string) {
	h.t.Helper()
	command := gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: text, Source: "native"}}
	if _, err := h.gw.Do(h.t.Context(), p, conversation, command); err != nil {
		h.t.Fatal(err)
	}
}

func (h *harness) attach(channel, chat, conversation string) {
	h.t.Helper()
	if err := h.host.Attach(h.t.Context(), channel, chat, conversation); err != nil {
		h.t.Fatal(err)
	}
}

func (h *harness) detach(channel, chat, conversation string) {
	h.t.Helper()
	if err := h.host.Detach(h.t.Context(), channel, chat, conversation); err != nil {
		h.t.Fatal(err)
	}
}

// next asks for the next batch of the screen's chat.
func (s *screen) next() { s.a.say(`{"type":"next","chat":%q}`, s.chat) }

// A turn that runs when its conversation is attached is delivered from its beginning. The messages of the chat go to the conversation, which
// belongs to another user, and the position is stored for the next process and the next gateway.
func TestAttach(t *testing.T) {
	t.Parallel()
	j, p, release := newJournal(t), newPuppet(t, "pigeon"), make(chan struct{})
	h := newHarness(t, j, agentFunc(func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
		if in.Message.Text != "first" {
			return echo(ctx, in, out)
		}
		if err := errors.Join(out.Text("The answer "), out.Flush()); err != nil {
			return err
		}
		<-release
		return out.Text("ends.")
	}), p)
	a := p.next()
	id := h.create(carol)
	h.say(carol, id, "zero")
	h.say(carol, id, "first")
	h.attach("pigeon", "42", id)
	if open := a.want("open"); open.Chat != "42" || open.Conversation != id {
		t.Errorf("open: %s", open.raw)
	}
	if err := h.host.Attach(t.Context(), "pigeon", "42", id); !errors.Is(err, host.ErrAttached) {
		t.Errorf("attached twice: %v", err)
	}
	if err := h.host.Attach(t.Context(), "pigeon", "42", "unknown"); !errors.Is(err, gateway.ErrNotFound) {
		t.Errorf("an unknown conversation: %v", err)
	}
	if err := h.host.Attach(t.Context(), "owl", "42", id); !errors.Is(err, host.ErrUnknownChannel) {
		t.Errorf("an unknown channel: %v", err)
	}
	close(release)
	s := &screen{t: t, a: a, chat: "42"}
	for ended := ""; !strings.HasSuffix(ended, "assistant: The answer ends."); {
		s.take(a.want("deliver"))
		s.next()
		ended = s.text()
		if strings.Contains(ended, "user: zero") {
			t.Errorf("an earlier message is shown: %q", ended)
		}
	}
	for n := len(s.fold.Turns); n == 0 || s.fold.Turns[n-1].Unfinished(); { // its end may follow
		s.take(a.want("deliver"))
		s.next()
	}
	a.say(`{"type":"keep","id":"k","chat":"42","cursor":%q}`, s.cursor)
	a.want("kept")

	// The process is killed; the next one resumes with the attached conversation. So does the next gateway.
	a.cut()
	a = p.next()
	if open := a.want("open"); open.Conversation != id || open.Cursor != s.cursor {
		t.Errorf("after a kill: %s", open.raw)
	}
	h.close()
	newHarness(t, j, agentFunc(echo), p)
	a = p.next()
	if open := a.want("open"); open.Conversation != id || open.Cursor != s.cursor {
		t.Errorf("after a restart: %s", open.raw)
	}
	a.send("u1", "42", "from the chat")
	s.a = a
	rest := s.until(len(s.fold.Turns) + 1)
	if rest["ack"].raw == "" {
		rest["ack"] = a.want("ack")
	}
	if rest["ack"].Conversation != id || !strings.HasSuffix(s.text(), "user: from the chat|assistant: you said from the chat") {
		t.Errorf("%s shows %q", rest["ack"].raw, s.text())
	}
	m := s.fold.Message(rest["ack"].Message)
	if m == nil || m.Source != "pigeon" || m.Author == nil || m.Author.Name != "Ann" {
		t.Errorf("the message of the chat is %+v", m)
	}
}

// text returns the messages that the chat shows.
func (s *screen) text() string {
	var list []string
	for _, m := range s.fold.Messages {
		list = append(list, string(m.Role)+": "+m.Visible())
	}
	return strings.Join(list, "|")
}

// Two chats of one channel and one of another show a conversation without an owner. A chat that is detached gets a closed line, and its
// next message begins a new conversation, although it has begun one before.
func TestDetach(t *testing.T) {
	t.Parallel()
	one, two := newPuppet(t, "pigeon"), newPuppet(t, "owl")
	h := newHarness(t, newJournal(t), agentFunc(echo), one, two)
	a, b := one.next(), two.next()
	operator := gateway.Principal{Admin: true}
	a.send("u1", "42", "hello")
	s := &screen{t: t, a: a, chat: "42"}
	rest := s.until(1)
	if rest["ack"].raw == "" {
		rest["ack"] = a.want("ack")
	}
	begun := rest["ack"].Conversation
	id := h.create(operator)
	h.attach("pigeon", "42", id) // its process has a batch in flight
	a.say(`{"type":"keep","id":"k","chat":"42","state":17}`)
	if l := a.want("rejected"); l.Reason != gateway.ReasonUnknown {
		t.Errorf("a state for the former conversation: %s", l.raw)
	}
	s.next()
	if open := a.want("open"); open.Conversation != id || open.State != nil {
		t.Errorf("open: %s", open.raw)
	}
	h.attach("pigeon", "43", id)
	if open := a.want("open"); open.Conversation != id || open.Chat != "43" {
		t.Errorf("open: %s", open.raw)
	}
	h.attach("owl", "42", id)
	b.want("open")
	h.say(operator, id, "to all")
	screens := map[string]*screen{}
	for _, sc := range []*screen{{t: t, a: a, chat: "42"}, {t: t, a: a, chat: "43"}, {t: t, a: b, chat: "42"}} {
		screens[sc.chat+" "+map[*actor]string{a: "a", b: "b"}[sc.a]] = sc
	}
	wait := func(name string, on *actor, text string) { // for one screen, while lines for the others of the process arrive
		t.Helper()
		for screens[name].text() != text {
			l := on.want("deliver")
			sc := screens[l.Chat+name[2:]]
			sc.take(l)
			sc.next()
		}
	}
	const all = "user: to all|assistant: you said to all"
	wait("42 a", a, all)
	wait("43 a", a, all)
	wait("42 b", b, all)

	h.detach("pigeon", "42", id)
	if err := h.host.Detach(t.Context(), "pigeon", "42", id); !errors.Is(err, gateway.ErrNotFound) {
		t.Errorf("detached twice: %v", err)
	}
	if err := h.host.Detach(t.Context(), "owl", "42", begun); !errors.Is(err, gateway.ErrNotFound) {
		t.Errorf("a conversation of another chat was detached: %v", err)
	}
	for l := a.hear(); l.Type != "closed"; l = a.hear() { // the end of the turn may come before
		if l.Type != "deliver" {
			t.Fatalf("got %s", l.raw)
		}
		sc := screens[l.Chat+" a"]
		sc.take(l)
		sc.next()
	}
	a.send("u2", "42", "and now")
	var opened, ack line
	for opened.raw == "" || ack.raw == "" {
		switch l := a.hear(); l.Type {
		case "open":
			opened = l
		case "ack":
			ack = l
		}
	}
	if ack.Conversation == id || ack.Conversation == begun || opened.Conversation != ack.Conversation {
		t.Errorf("after the end: %s, %s", opened.raw, ack.raw)
	}
}

// A conversation that is attached while no process runs is delivered to the next one. So is the end of an attachment.
func TestAttachWithoutProcess(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, "pigeon")
	h := newHarness(t, newJournal(t), agentFunc(echo), p)
	id := h.create(carol) // the first process has connected, but is not ready
	h.attach("pigeon", "42", id)
	h.attach("pigeon", "43", id)
	h.detach("pigeon", "43", id)
	if err := h.host.Attach(t.Context(), "pigeon", "42", id); !errors.Is(err, host.ErrAttached) {
		t.Errorf("attached twice: %v", err)
	}
	if list, err := h.host.Channels(t.Context()); err != nil || len(list) != 1 || list[0].Chats != 1 || list[0].IsReady {
		t.Errorf("%+v, %v", list, err)
	}
	h.say(carol, id, "hello")
	a := p.next()
	s := &screen{t: t, a: a, chat: "42"}
	rest := s.until(1)
	if rest["open"].Conversation != id {
		t.Errorf("open: %s", rest["open"].raw)
	}
	s.want("user: hello", "assistant: you said hello")
	a.send("u1", "43", "hi")
	for l := a.hear(); l.Type != "ack"; l = a.hear() {
		if l.Conversation == id || l.Chat != "43" {
			t.Errorf("the detached chat got %s", l.raw)
		}
	}
}

// If an attached conversation is deleted, its chats get closed lines without a further message.
func TestDeleteAttached(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, "pigeon")
	h := newHarness(t, newJournal(t), agentFunc(echo), p)
	a := p.next()
	id := h.create(carol)
	h.attach("pigeon", "42", id)
	a.want("open")
	if _, err := h.gw.Do(t.Context(), carol, id, gateway.Command{Type: gateway.CommandDelete}); err != nil {
		t.Fatal(err)
	}
	for l := a.hear(); l.Type != "closed"; l = a.hear() {
		a.say(`{"type":"next","chat":"42"}`)
	}
	if err := h.host.Detach(t.Context(), "pigeon", "42", id); !errors.Is(err, gateway.ErrNotFound) {
		t.Errorf("detached after the delete: %v", err)
	}
	a.send("u1", "42", "hello")
	if open := a.those("open", "ack", "deliver")["open"]; open.Conversation == id {
		t.Errorf("open: %s", open.raw)
	}
}

// People in an attached chat have the rights of the conversation's owner in it, and nowhere else.
func TestRightsOfAttachedChat(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, "pigeon")
	var saw agent.Principal
	h := newHarness(t, newJournal(t), agentFunc(func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
		saw = in.Principal
		return echo(ctx, in, out)
	}), p)
	a := p.next()
	id := h.create(carol)
	h.attach("pigeon", "42", id)
	a.want("open")
	a.send("u1", "42", "hello")
	s := &screen{t: t, a: a, chat: "42"}
	s.until(1)
	if saw.Tenant != carol.Tenant || saw.Subject != carol.Subject {
		t.Errorf("the turn ran for %+v", saw)
	}
	stranger := gateway.Principal{Tenant: "$plugin/pigeon", Subject: "42"}
	if _, err := h.gw.Conversation(t.Context(), stranger, gateway.ActionRead, id); !errors.Is(err, gateway.ErrNotFound) {
		t.Errorf("the chat itself can read the conversation: %v", err)
	}
	if s.fold.Messages[0].Role != event.User {
		t.Errorf("%+v", s.fold.Messages[0])
	}
}

// Operators attach and detach a chat while people write in it and its process is replaced. In the end the chat, the process and the journal
// agree on the conversation.
func TestRebindings(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, "pigeon")
	h := newHarness(t, newJournal(t), agentFunc(echo), p)
	ids := []string{h.create(carol), h.create(carol)}
	changed := make(chan struct{})
	go func() {
		defer close(changed)
		for i := range 60 {
			id := ids[i%2]
			if err := h.host.Attach(t.Context(), "pigeon", "42", id); err != nil {
				t.Errorf("attach: %v", err)
			}
			if i%3 == 0 {
				if err := h.host.Detach(t.Context(), "pigeon", "42", id); err != nil && !errors.Is(err, gateway.ErrNotFound) {
					t.Errorf("detach: %v", err)
				}
			}
		}
	}()
	a := p.next()
	n := 0
	shown := ""
	react := func() line {
		l := a.hear()
		switch l.Type {
		case "open":
			shown = l.Conversation
		case "closed":
			shown = ""
		case "deliver":
			a.say(`{"type":"next","chat":"42"}`)
		}
		return l
	}
	for isDone := false; !isDone; {
		select {
		case <-changed:
			isDone = true
		default:
		}
		n++
		id := fmt.Sprint("u", n)
		a.send(id, "42", "hello")
		for l := react(); l.ID != id; l = react() {
			continue
		}
		if n == 3 {
			a.cut()
			a, shown = p.next(), ""
		}
	}
	// The last change was to attach the second conversation.
	a.send("last", "42", "the end")
	for ack := ""; ack == "" || shown != ids[1]; {
		if l := react(); l.ID == "last" {
			ack = l.raw
			if l.Conversation != ids[1] {
				t.Fatalf("the last message: %s", l.raw)
			}
		}
	}
	a.cut()
	a = p.next()
	if open := a.want("open"); open.Conversation != ids[1] {
		t.Errorf("after a restart: %s", open.raw)
	}
}
