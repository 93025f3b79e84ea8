package eliza

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
)

// texts returns the list as "role: text".
func texts(messages []message) []string {
	var all []string
	for _, m := range messages {
		all = append(all, m.Role+": "+m.Text)
	}
	return all
}

func wantTexts(t *testing.T, got []message, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, texts(got)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestAMessageAndItsReply(t *testing.T) {
	a := agentFunc(func(_ context.Context, in agent.Input, out *agent.Emitter) error {
		if err := out.Status("Thinking about it", ""); err != nil {
			return err
		}
		if err := out.Text("re: " + in.Message.Text); err != nil {
			return err
		}
		return out.End(event.Completed, "", &event.Usage{Model: "m", Input: 10, CacheRead: 5, Output: 3})
	})
	bubble(t, a, func(h *harness) {
		c := h.create()
		var raw map[string]any
		h.do(200, &raw, "POST", at(c, "/messages"), `{"text":"hi","channelType":"DM","conversationMode":"power","metadata":{"a":1},"language":"en","source":"client_chat"}`)
		list := h.messages(c)
		if len(list) != 2 {
			t.Fatalf("%+v", list)
		}
		user, answer := list[0], list[1]
		if d := cmp.Diff(map[string]any{
			"text": "Thinking about it\n\nre: hi", "agentName": "eliza", "messageId": answer.ID, "userMessageId": user.ID, "turn": answer.Turn,
			"actionCallbackHistory": []any{"Thinking about it"},
			"usage":                 map[string]any{"promptTokens": 15., "completionTokens": 3., "totalTokens": 18., "model": "m"},
		}, raw); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
		var listed struct{ Messages []map[string]any }
		h.do(200, &listed, "GET", at(c, "/messages"), "")
		now := float64(time.Now().UnixMilli())
		if d := cmp.Diff([]map[string]any{
			{"id": user.ID, "role": "user", "text": "hi", "timestamp": now},
			{
				"id": answer.ID, "role": "assistant", "text": "Thinking about it\n\nre: hi", "timestamp": now, "turn": answer.Turn,
				"actionCallbackHistory": []any{"Thinking about it"},
			},
		}, listed.Messages); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	})
}

func TestListDuringATurn(t *testing.T) {
	var goOn chan struct{} // created in the bubble
	a := agentFunc(func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
		if err := out.Text("half"); err != nil {
			return err
		}
		<-goOn
		return out.Text(" and whole")
	})
	bubble(t, a, func(h *harness) {
		goOn = make(chan struct{})
		c := h.create()
		w := h.stream("POST", at(c, "/messages/stream"), `{"text":"hi"}`)
		synctest.Wait()
		wantTexts(t, h.messages(c), "user: hi", "assistant: half")
		close(goOn)
		w.wait()
		wantTexts(t, h.messages(c), "user: hi", "assistant: half and whole")
	})
}

// The list includes messages that the gateway no longer has in memory, and is limited to the newest 200.
func TestLongConversation(t *testing.T) {
	bubble(t, echo, func(h *harness) {
		c := h.create()
		const turns = 130
		for i := range turns {
			h.send(c, fmt.Sprint(i))
		}
		var want []string
		for i := turns - 100; i < turns; i++ {
			want = append(want, fmt.Sprintf("user: %d", i), fmt.Sprintf("assistant: re: %d", i))
		}
		for _, when := range []string{"while it runs", "after a restart"} {
			if d := cmp.Diff(want, texts(h.messages(c))); d != "" {
				t.Errorf("%s (-want +got)\n%s", when, d)
			}
			h.stop()
			h.start()
		}
	})
}

// A turn with more messages than the gateway keeps in memory is one complete message, in the list and for a reader that
// attaches late.
func TestLongTurn(t *testing.T) {
	const n = 780 // the gateway trims its memory at 800 messages, so only the end of the turn stays in memory
	var want []string
	for i := range n {
		want = append(want, fmt.Sprintf("part %d", i))
	}
	whole := strings.Join(want, "\n\n")
	long := agentFunc(func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
		if in.Message.Text != "long" {
			return echo(ctx, in, out)
		}
		for i, text := range want {
			m := fmt.Sprintf("k%d", i)
			err := out.Emit([]event.Event{
				{Type: event.MessageStart, Message: m, Body: &event.Body{Role: event.Assistant}},
				{Type: event.PartStart, Message: m, Part: "p", Body: &event.Body{Kind: event.KindText}},
				{Type: event.PartAppend, Message: m, Part: "p", Text: text},
				{Type: event.MessageEnd, Message: m},
			}, nil)
			if err != nil {
				return err
			}
		}
		return nil
	})
	bubble(t, long, func(h *harness) {
		c := h.create()
		w := h.stream("POST", at(c, "/messages/stream"), `{"text":"long"}`)
		s := w.wait()
		if s.final() != whole || s.text != whole {
			t.Errorf("the stream gave %d and %d bytes of %d", len(s.final()), len(s.text), len(whole))
		}
		// In memory is all of the turn, its end, or nothing.
		for i := range 60 {
			if i%25 == 0 {
				again := h.stream("GET", at(c, "/messages/stream"), "", "Last-Event-ID", s.ids[0]).wait()
				if again.done == nil || again.final() != whole || again.done.MessageID != s.done.MessageID {
					t.Fatalf("attached after %d more turns: %d bytes of %d", i, len(again.final()), len(whole))
				}
			}
			h.send(c, fmt.Sprint(i))
		}
		list := h.messages(c)
		if len(list) != 2*61 || list[1].Text != whole || list[1].ID != s.done.MessageID {
			t.Fatalf("%d messages; the second has %d bytes", len(list), len(list[1].Text))
		}
	})
}

func TestTruncate(t *testing.T) {
	type truncated struct {
		OK           bool
		DeletedCount int
	}
	for _, x := range []struct {
		name      string
		pick      func([]message) message
		inclusive bool
		deleted   int
		left      []string
	}{
		{"after a user's message", func(m []message) message { return m[2] }, false, 3, []string{"user: a", "assistant: re: a", "user: b"}},
		{"with a user's message", func(m []message) message { return m[2] }, true, 4, []string{"user: a", "assistant: re: a"}},
		{"after an answer", func(m []message) message { return m[1] }, false, 4, []string{"user: a", "assistant: re: a"}},
		{"with an answer", func(m []message) message { return m[1] }, true, 5, []string{"user: a"}},
		{"everything", func(m []message) message { return m[0] }, true, 6, nil},
		{"nothing", func(m []message) message { return m[5] }, false, 0, []string{"user: a", "assistant: re: a", "user: b", "assistant: re: b", "user: c", "assistant: re: c"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			bubble(t, echo, func(h *harness) {
				c := h.create()
				for _, text := range []string{"a", "b", "c"} {
					h.send(c, text)
				}
				synctest.Wait() // the agent has just returned
				var got truncated
				body := fmt.Sprintf(`{"messageId":%q,"inclusive":%v}`, x.pick(h.messages(c)).ID, x.inclusive)
				h.do(200, &got, "POST", at(c, "/messages/truncate"), body)
				if !got.OK || got.DeletedCount != x.deleted {
					t.Errorf("%+v, want %d deleted", got, x.deleted)
				}
				for range 2 {
					wantTexts(t, h.messages(c), x.left...)
					h.stop()
					h.start()
				}
			})
		})
	}
}

func TestTruncateFarBack(t *testing.T) {
	bubble(t, echo, func(h *harness) {
		c := h.create()
		first := h.send(c, "first")
		for i := range 250 {
			h.send(c, fmt.Sprint(i))
		}
		synctest.Wait()
		var got struct{ DeletedCount int }
		h.do(200, &got, "POST", at(c, "/messages/truncate"), `{"messageId":"`+first.MessageID+`"}`)
		if got.DeletedCount != 500 {
			t.Errorf("%d deleted, want 500", got.DeletedCount)
		}
		wantTexts(t, h.messages(c), "user: first", "assistant: re: first")
	})
}

// The removed message may be the first of a page. The one before it must stay.
func TestTruncateAtThePageEdge(t *testing.T) {
	bubble(t, echo, func(h *harness) {
		c := h.create()
		for i := range 110 {
			h.send(c, fmt.Sprint(i))
		}
		synctest.Wait()
		h.do(200, nil, "POST", at(c, "/messages/truncate"), `{"messageId":"`+h.messages(c)[0].ID+`","inclusive":true}`)
		list := h.messages(c)
		if len(list) != 20 || list[19].Text != "re: 9" {
			t.Errorf("%q", texts(list))
		}
	})
}

// waiting is an agent that emits a text and then waits to be stopped or released.
type waiting struct{ goOn chan struct{} }

func (w *waiting) Run(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
	if err := out.Text("I begin"); err != nil {
		return err
	}
	select {
	case <-w.goOn:
		return out.Text(" and end")
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestTruncateIsRefusedDuringATurn(t *testing.T) {
	a := &waiting{}
	bubble(t, a, func(h *harness) {
		a.goOn = make(chan struct{})
		c := h.create()
		w := h.stream("POST", at(c, "/messages/stream"), `{"text":"hi"}`)
		synctest.Wait()
		h.refused(409, "unfinished", "POST", at(c, "/messages/truncate"), `{"messageId":"`+h.messages(c)[0].ID+`"}`)
		close(a.goOn)
		w.wait()
		wantTexts(t, h.messages(c), "user: hi", "assistant: I begin and end")
	})
}

func TestAbort(t *testing.T) {
	a := &waiting{}
	type aborted struct {
		OK, Aborted bool
		Turn        string
	}
	bubble(t, a, func(h *harness) {
		a.goOn = make(chan struct{})
		c := h.create()
		var got aborted
		h.do(200, &got, "POST", "/api/turns/"+c+"/abort", "")
		if !got.OK || got.Aborted {
			t.Errorf("nothing ran: %+v", got)
		}
		w := h.stream("POST", at(c, "/messages/stream"), `{"text":"hi"}`)
		synctest.Wait()
		h.do(200, &got, "POST", "/api/turns/"+c+"/abort", "")
		if !got.OK || !got.Aborted || got.Turn == "" {
			t.Errorf("%+v", got)
		}
		s := w.wait()
		if s.done == nil || s.done.FullText != "I begin" || s.done.Outcome != event.Cancelled || s.done.Turn != got.Turn || s.done.NoResponseReason != "" {
			t.Errorf("%+v", s.done)
		}
		list := h.messages(c)
		wantTexts(t, list, "user: hi", "assistant: I begin")
		if !list[1].Interrupted {
			t.Error("the list does not say that it was stopped")
		}
	})
}

func failing(code, message string) agentFunc {
	return func(_ context.Context, in agent.Input, out *agent.Emitter) error {
		if text, ok := strings.CutPrefix(in.Message.Text, "say "); ok {
			if err := out.Text(text); err != nil {
				return err
			}
		}
		if code == "" {
			return errors.New(message)
		}
		return &agent.Error{Code: code, Message: message, Retryable: true}
	}
}

func TestFailures(t *testing.T) {
	for _, x := range []struct{ code, kind string }{
		{"rate_limit_error", rateLimited},
		{"insufficient_quota", insufficientCredits},
		{"billing_error", insufficientCredits},
		{"overloaded_error", providerIssue},
		{"api_error", providerIssue},
		{"timeout", providerIssue},
		{"no_provider", noProvider},
		{"context_length_exceeded", providerIssue}, // every other code
		{"", providerIssue},
	} {
		says := "upstream says no"
		if x.code == "" { // an error without a code has a text for operators
			says = "the agent failed"
		}
		t.Run(x.code, func(t *testing.T) {
			bubble(t, failing(x.code, "upstream says no"), func(h *harness) {
				c := h.create()
				s := h.stream("POST", at(c, "/messages/stream"), `{"text":"hi"}`).wait()
				if s.done == nil || s.done.FailureKind != x.kind || s.done.FullText != failureTexts[x.kind] || s.text != failureTexts[x.kind] ||
					s.done.Outcome != event.Failed || s.done.Error.Message != says {
					t.Errorf("%+v %q", s.done, s.text)
				}
				r := h.send(c, "again")
				if r.FailureKind != x.kind || r.Text != failureTexts[x.kind] {
					t.Errorf("%+v", r)
				}
				list := h.messages(c)
				wantTexts(t, list, "user: hi", "assistant: "+failureTexts[x.kind], "user: again", "assistant: "+failureTexts[x.kind])
				if list[1].FailureKind != x.kind || list[1].ID != s.done.MessageID || list[3].ID != r.MessageID {
					t.Errorf("%+v", list)
				}
				// The partial text stays, and is not shown as complete, live or after a reload.
				s = h.stream("POST", at(c, "/messages/stream"), `{"text":"say half"}`).wait()
				if s.done == nil || s.done.FullText != "half" || s.done.FailureKind != x.kind || s.done.Outcome != event.Failed || s.done.Error.Message != says {
					t.Errorf("%+v", s.done)
				}
				for _, when := range []string{"at the end", "after a restart"} {
					list = h.messages(c)
					if last := list[len(list)-1]; last.Text != "half" || last.FailureKind != x.kind || last.ID != s.done.MessageID {
						t.Errorf("%s: %+v", when, last)
					}
					h.stop()
					h.start()
				}
			})
		})
	}
}

// A turn that has only reasoning or status parts and then fails has its failure in the list too.
func TestAFailureAfterThoughts(t *testing.T) {
	thinks := agentFunc(func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
		return errors.Join(out.Reasoning("let me see"), errors.New("no more"))
	})
	bubble(t, thinks, func(h *harness) {
		c := h.create()
		s := h.stream("POST", at(c, "/messages/stream"), `{"text":"hi"}`).wait()
		list := h.messages(c)
		wantTexts(t, list, "user: hi", "assistant: "+failureTexts[providerIssue])
		if s.done == nil || s.done.FullText != list[1].Text || s.done.MessageID != list[1].ID || list[1].FailureKind != providerIssue {
			t.Errorf("%+v\n%+v", s.done, list)
		}
	})
}

func TestAnIgnoredMessage(t *testing.T) {
	silent := agentFunc(func(_ context.Context, _ agent.Input, out *agent.Emitter) error { return out.Reasoning("not for me") })
	bubble(t, silent, func(h *harness) {
		c := h.create()
		s := h.stream("POST", at(c, "/messages/stream"), `{"text":"hi"}`).wait()
		if s.done == nil || s.done.FullText != "" || s.done.NoResponseReason != "ignored" || len(s.tokens) != 0 {
			t.Errorf("%+v", s.done)
		}
		if r := h.send(c, "again"); r.Text != "" || r.NoResponseReason != "ignored" {
			t.Errorf("%+v", r)
		}
		wantTexts(t, h.messages(c), "user: hi", "user: again")
	})
}

func TestPictureAnswer(t *testing.T) {
	draw := agentFunc(func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
		return out.Media(event.Media{URL: "/api/files/cat.png", MIME: "image/png", Name: "cat.png"})
	})
	bubble(t, draw, func(h *harness) {
		c := h.create()
		s := h.stream("POST", at(c, "/messages/stream"), `{"text":"draw"}`).wait()
		if s.done == nil || s.done.NoResponseReason != "" || len(s.done.Attachments) != 1 || s.done.Attachments[0].URL != "/api/files/cat.png" {
			t.Errorf("%+v", s.done)
		}
		if list := h.messages(c); len(list) != 2 || !slices.Equal(list[1].Attachments, s.done.Attachments) {
			t.Errorf("%+v", list)
		}
	})
}

func TestInjectedMessages(t *testing.T) {
	bubble(t, echo, func(h *harness) {
		c := h.create()
		h.send(c, "hi")
		_, err := h.gw.Do(h.t.Context(), gateway.Principal{Admin: true}, c, gateway.Command{
			Type: gateway.CommandInject, Message: &gateway.CommandMessage{Text: "By the way", Source: "reminder"},
		})
		if err != nil {
			t.Fatal(err)
		}
		list := h.messages(c)
		wantTexts(t, list, "user: hi", "assistant: re: hi", "assistant: By the way")
		if list[2].Source != "reminder" || list[2].Turn != "" {
			t.Errorf("%+v", list[2])
		}
	})
}

func TestListIsJSONForJavaScript(t *testing.T) {
	bubble(t, echo, func(h *harness) {
		c := h.create()
		text := "a<b>&\u2028\x00\U0001F600"
		h.do(200, nil, "POST", at(c, "/messages"), `{"text":`+quote(text)+`}`)
		wantTexts(t, h.messages(c), "user: "+text, "assistant: re: "+text)
		if b, err := json.Marshal(message{}); err != nil || string(b) != `{"id":"","role":"","text":"","timestamp":0}` {
			t.Errorf("%s %v", b, err)
		}
	})
}
