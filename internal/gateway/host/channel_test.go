//go:build unix

package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// screen is the transcript of a chat, folded from the batches that were delivered to it.
type screen struct {
	t      *testing.T
	a      *actor
	chat   string
	fold   transcript.Transcript
	cursor feed.Cursor
}

// until reads batches, and asks for the next ones, until n turns have ended. It returns the other lines that arrive.
func (s *screen) until(ended int) (rest map[string]line) {
	s.t.Helper()
	rest = map[string]line{}
	for {
		l := s.a.hear()
		if l.Type != "deliver" {
			rest[l.Type] = l
			continue
		}
		s.take(l)
		n := 0
		for _, turn := range s.fold.Turns {
			if !turn.Unfinished() {
				n++
			}
		}
		if n >= ended {
			return rest
		}
		s.a.say(`{"type":"next","chat":%q}`, s.chat)
	}
}

func (s *screen) take(l line) {
	s.t.Helper()
	f, err := feed.ParseFrame(l.Frame)
	if err == nil {
		err = f.Apply(&s.fold)
	}
	if err != nil || l.Chat != s.chat {
		s.t.Fatalf("%s: %v", l.raw, err)
	}
	s.cursor = f.Cursor
}

func (s *screen) want(texts ...string) {
	s.t.Helper()
	var got []string
	for _, m := range s.fold.Messages {
		got = append(got, string(m.Role)+": "+m.Visible())
	}
	if strings.Join(got, "|") != strings.Join(texts, "|") {
		s.t.Errorf("the chat shows %q, want %q", got, texts)
	}
}

// The channel's process is killed before and after it stores its position, and the gateway restarts. No message is lost or repeated.
func TestChannel(t *testing.T) {
	t.Parallel()
	j, p := newJournal(t), newPuppet(t, "pigeon")
	h := newHarness(t, j, agentFunc(echo), p)
	a := p.next()
	a.send("u1", "42", "hello")
	s := &screen{t: t, a: a, chat: "42"}
	rest := s.until(1)
	if len(rest) < 2 { // the ack may come last
		rest["ack"] = a.want("ack")
	}
	open, ack := rest["open"], rest["ack"]
	if open.Chat != "42" || open.Conversation == "" || open.Cursor == "" || open.State != nil {
		t.Errorf("open: %s", open.raw)
	}
	if ack.ID != "u1" || ack.Chat != "42" || ack.Conversation != open.Conversation || ack.Turn == "" || ack.Message == "" {
		t.Errorf("ack: %s", ack.raw)
	}
	s.want("user: hello", "assistant: you said hello")

	// Killed before it stored a position: everything is delivered again, and a repeated command has no effect.
	a.cut()
	a = p.next()
	s = &screen{t: t, a: a, chat: "42"}
	open = a.want("open")
	a.send("u1", "42", "hello")
	rest = s.until(1)
	if rest["ack"].raw == "" {
		rest["ack"] = a.want("ack")
	}
	if got := rest["ack"]; !got.Repeated || got.Turn != ack.Turn {
		t.Errorf("second delivery: %s", got.raw)
	}
	s.want("user: hello", "assistant: you said hello")

	// Killed after it stored its position: nothing is delivered again.
	a.say(`{"type":"keep","id":"k","chat":"42","cursor":%q,"state":{"posted":["17"]}}`, s.cursor)
	if kept := a.want("kept"); kept.ID != "k" {
		t.Errorf("kept: %s", kept.raw)
	}
	a.cut()
	a = p.next()
	open = a.want("open")
	if open.Cursor != s.cursor || string(open.State) != `{"posted":["17"]}` {
		t.Errorf("after the process was killed: %s", open.raw)
	}
	cursor := s.cursor
	a.send("u2", "42", "again")
	s.a = a
	s.until(2)
	s.want("user: hello", "assistant: you said hello", "user: again", "assistant: you said again")

	// The gateway restarts and resumes at the stored position.
	h.close()
	_ = newHarness(t, j, agentFunc(echo), p)
	a = p.next()
	open = a.want("open")
	if open.Cursor != cursor || string(open.State) != `{"posted":["17"]}` {
		t.Errorf("after a restart: %s", open.raw)
	}
	s = &screen{t: t, a: a, chat: "42"}
	s.until(1)
	s.want("user: again", "assistant: you said again")
}

// A chat gets one batch at a time. The next one merges everything that was committed in between.
func TestOneBatchAtATime(t *testing.T) {
	t.Parallel()
	p, step := newPuppet(t, "pigeon"), make(chan string)
	newHarness(t, newJournal(t), agentFunc(func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
		for word := range step {
			if err := out.Text(word); err != nil {
				return err
			}
			if err := out.Flush(); err != nil {
				return err
			}
		}
		return nil
	}), p)
	a := p.next()
	a.send("u1", "42", "count")
	s := &screen{t: t, a: a, chat: "42"}
	first := a.those("open", "ack", "deliver")["deliver"]
	s.take(first)
	for i := range 100 {
		step <- fmt.Sprint(i, " ")
	}
	close(step)
	a.say(`{"type":"keep","chat":"42","state":1}`) // an answer to which nothing was delivered
	a.want("kept")
	n := 0
	for len(s.fold.Turns) == 0 || s.fold.Turns[0].Unfinished() {
		a.say(`{"type":"next","chat":"42"}`)
		s.take(a.want("deliver"))
		n++
	}
	if n > 3 { // the agent may not be through when the first is asked for
		t.Errorf("100 words arrived in %d batches", n)
	}
	want := ""
	for i := range 100 {
		want += fmt.Sprint(i, " ")
	}
	s.want("user: count", "assistant: "+want)
}

// People in a chat can answer approval requests and stop a running turn.
func TestAnswerAndStop(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, "pigeon")
	newHarness(t, newJournal(t), agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
		a, err := out.Ask(ctx, event.Request{ID: "q", Kind: event.RequestApproval, Prompt: "Really?"})
		if err != nil {
			return err
		}
		if err := out.Text("so be it: " + string(a.Decision)); err != nil {
			return err
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}), p)
	a := p.next()
	a.send("u1", "42", "do it")
	s := &screen{t: t, a: a, chat: "42"}
	turn := ""
	until := func(what string, ok func(*transcript.Turn) bool) {
		t.Helper()
		for n := 0; ; {
			switch l := a.hear(); l.Type {
			case "ack":
				turn = l.Turn
			case "rejected":
				t.Fatal(l.raw)
			case "deliver":
				s.take(l)
				n++
				a.say(`{"type":"next","chat":"42"}`)
			}
			if tr := s.fold.Turn(turn); n > 0 && tr != nil && ok(tr) {
				return
			}
			if n > 100 {
				t.Fatalf("%s did not arrive", what)
			}
		}
	}
	until("the question", func(tr *transcript.Turn) bool { return len(tr.Requests) == 1 && tr.Requests[0].Prompt == "Really?" })
	a.say(`{"type":"command","id":"u2","chat":"42","command":{"type":"answer","turn":%q,"request":"q","decision":"approve"}}`, turn)
	until("the answer", func(*transcript.Turn) bool {
		return len(s.fold.Messages) == 2 && s.fold.Messages[1].Visible() == "so be it: approve"
	})
	a.say(`{"type":"command","id":"u3","chat":"42","command":{"type":"stop","turn":%q}}`, turn)
	until("the end", func(tr *transcript.Turn) bool { return tr.Outcome == event.Cancelled })
}

// A channel can send, stop and answer in the conversations of its chats. It has no access to any other conversation.
func TestChannelAccess(t *testing.T) {
	t.Parallel()
	one, two := newPuppet(t, "pigeon"), newPuppet(t, "owl")
	h := newHarness(t, newJournal(t), agentFunc(echo), one, two)
	a, b := one.next(), two.next()
	a.send("u1", "42", "hello")
	b.send("u1", "42", "hello")
	mine, theirs := a.those("open", "ack", "deliver")["ack"], b.those("open", "ack", "deliver")
	other, shown := theirs["ack"], &screen{t: t, a: b, chat: "42"}
	shown.take(theirs["deliver"])
	if mine.Conversation == other.Conversation {
		t.Error("two channels share a conversation")
	}
	for _, who := range []gateway.Principal{{Subject: "42"}, {Tenant: "$plugin/owl", Subject: "42"}, {Tenant: "$plugin/pigeon", Subject: "43"}} {
		if _, err := h.gw.Conversation(t.Context(), who, gateway.ActionRead, mine.Conversation); err == nil {
			t.Errorf("%+v can read the conversation", who)
		}
	}
	for _, command := range []string{`{"type":"delete"}`, `{"type":"share","subject":"eve","access":"read"}`, `{"type":"inject","message":{"text":"x"}}`, `{"type":"truncate"}`, `{"type":"no"}`} {
		a.say(`{"type":"command","id":"c","chat":"42","command":%s}`, command)
		if l := a.want("rejected"); l.ID != "c" || l.Reason != gateway.ReasonInvalid {
			t.Errorf("%s: %s", command, l.raw)
		}
	}
	for _, cursor := range []feed.Cursor{shown.cursor, "E.1", "x"} {
		a.say(`{"type":"keep","chat":"42","cursor":%q}`, cursor)
		if l := a.want("rejected"); l.Reason != gateway.ReasonInvalid {
			t.Errorf("cursor %s: %s", cursor, l.raw)
		}
	}
	a.say(`{"type":"keep","chat":"none","state":1}`)
	if l := a.want("rejected"); l.Reason != gateway.ReasonUnknown {
		t.Errorf("chat without a conversation: %s", l.raw)
	}
	a.say(`{"type":"keep","chat":"42","state":%q}`, strings.Repeat("x", 65<<10))
	if l := a.want("rejected"); l.Reason != gateway.ReasonTooLarge {
		t.Errorf("a large state: %s", l.raw)
	}
}

// If a chat's conversation is deleted, the channel gets a closed line, and the next message creates a new conversation.
func TestDeletedChat(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, "pigeon")
	h := newHarness(t, newJournal(t), agentFunc(echo), p)
	a := p.next()
	a.send("u1", "42", "hello")
	s := &screen{t: t, a: a, chat: "42"}
	rest := s.until(1)
	if rest["ack"].raw == "" {
		rest["ack"] = a.want("ack")
	}
	first := rest["ack"].Conversation
	if _, err := h.gw.Do(t.Context(), gateway.Principal{Admin: true}, first, gateway.Command{Type: gateway.CommandDelete}); err != nil {
		t.Fatal(err)
	}
	a.send("u2", "42", "are you there")
	got := map[string]line{}
	for got["open"].raw == "" || got["ack"].raw == "" {
		l := a.hear()
		got[l.Type] = l
	}
	if got["closed"].Chat != "42" || got["open"].Conversation == first || got["ack"].Conversation != got["open"].Conversation {
		t.Errorf("%v", got)
	}
	a.cut()
	a = p.next() // of the one that is deleted nothing is kept
	if l := a.want("open"); l.Conversation != got["ack"].Conversation {
		t.Errorf("after a restart: %s", l.raw)
	}
}

// shaky is a journal whose first lookup of a conversation after each message fails.
type shaky struct {
	journal.Journal
	fails atomic.Int32
}

func (j *shaky) Append(ctx context.Context, b journal.Batch) error {
	if len(b.Events) > 0 && b.Events[0].Type == event.MessageAdd {
		j.fails.Store(1)
	}
	return j.Journal.Append(ctx, b)
}

func (j *shaky) Conversation(ctx context.Context, id string) (journal.Summary, error) {
	if j.fails.Add(-1) == 0 {
		return journal.Summary{}, errors.New("a disk that hangs")
	}
	return j.Journal.Conversation(ctx, id)
}

// A failed delivery is retried even if nothing else is committed in the conversation.
func TestDeliveryIsRetried(t *testing.T) {
	t.Parallel()
	j, p := &shaky{Journal: newJournal(t)}, newPuppet(t, "pigeon")
	h := newHarness(t, j, agentFunc(echo), p)
	a := p.next()
	a.send("u1", "42", "hello")
	s := &screen{t: t, a: a, chat: "42"}
	rest := s.until(1)
	if rest["ack"].raw == "" {
		rest["ack"] = a.want("ack")
	}
	a.say(`{"type":"next","chat":"42"}`)
	note := gateway.Command{Type: gateway.CommandInject, Message: &gateway.CommandMessage{Text: "by the way"}}
	if _, err := h.gw.Do(t.Context(), gateway.Principal{Admin: true}, rest["ack"].Conversation, note); err != nil {
		t.Fatal(err)
	}
	for len(s.fold.Messages) < 3 {
		s.take(a.want("deliver"))
		a.say(`{"type":"next","chat":"42"}`)
	}
	s.want("user: hello", "assistant: you said hello", "assistant: by the way")
}

// An invalid line is reported to the channel and in State, and the process is restarted.
func TestInvalidLines(t *testing.T) {
	for text, reason := range map[string]string{
		"Traceback (most recent call last):":       "line 2 of the plugin's output is not a JSON object",
		`{"type":"command","chat":"42"}`:           "line 2 of the plugin's output: a command line needs id and command",
		`{"type":"next"}`:                          "line 2 of the plugin's output: next line without a chat",
		`{"type":"next","chat":7}`:                 "line 2 of the plugin's output: json",
		`{"type":"failed","error":"blocked"}`:      "line 2 of the plugin's output: failed line without a chat",
		`{"type":"failed","chat":"42"}`:            "line 2 of the plugin's output: a failed line needs an error",
		`{"type":"failed","chat":"42","error":{}}`: "line 2 of the plugin's output: json",
		`{"type":"failed","chat":"42","error":"x","turn":"` + strings.Repeat("t", 300) + `"}`: "line 2 of the plugin's output: event",
		`{"type":"ready","protocol":1,"kind":"channel"}`:                                      "line 2 of the plugin's output: ready was printed twice",
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			p := newPuppet(t, "pigeon")
			h := newHarness(t, newJournal(t), agentFunc(echo), p)
			a := p.next()
			a.say("%s", text)
			var told struct{ Message string }
			if last := a.stopped(); json.Unmarshal([]byte(last.raw), &told) != nil || !strings.Contains(told.Message, reason) {
				t.Errorf("%s: got %s, want %s", text, last.raw, reason)
			}
			if reason != "line 2 of the plugin's output is not a JSON object" { // what follows is the same for all
				return
			}
			a = p.next()
			a.say(`{"type":"of a later version","chat":"42"}`)
			a.say(`{"type":"next","chat":"unknown"}`)
			a.send("u1", "42", "hello")
			a.those("open", "ack", "deliver")
			if ready, _ := h.host.State("pigeon"); !ready {
				t.Error("the restarted process is not ready")
			}
			h.host.Stop("pigeon")
			if ready, why := h.host.State("pigeon"); ready || why != nil {
				t.Error("the stopped channel is still ready")
			}
		})
	}
}
