package web

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
)

// wantFrames checks the exact bytes of the next frames, except those of a typing indicator.
func wantFrames(t *testing.T, v *visitor, want ...string) {
	t.Helper()
	for _, w := range want {
		got := v.raw()
		if got != w {
			t.Errorf("frame %s, want %s", got, w)
		}
	}
}

// A client that connects as in the seed gets the seed's frames.
func TestSeedFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{}, nil)
		v := s.dial("")
		chat, log := chatOf(v.session), &conversation{}
		v.say(`{"type":"message","content":"hi"}`)
		if m := <-s.inbox.messages; m.Content != "hi" || m.ChatID != chat || m.SenderID != Visitor || m.Channel != "web" || m.ID == "" {
			t.Errorf("message %+v", m)
		}
		v.until(typeUser)
		y := s.tell(t.Context(), chat, "t1", log)
		y.open(event.KindText)
		y.write("Hello, ", "world.")
		y.end(event.Completed, "")
		v.until(typeTyping)
		wantFrames(t, v, `{"type":"stream","delta":"Hello, "}`, `{"type":"stream","delta":"world."}`, `{"type":"stream_done"}`)

		// After an error there is a message and no stream_done.
		y = s.tell(t.Context(), chat, "t2", log)
		y.write("Half an <answer>")
		y.end(event.Failed, "the model is overloaded")
		v.until(typeTyping)
		wantFrames(t, v, `{"type":"stream","delta":"Half an <answer>"}`, `{"type":"message","content":"⚠️ the model is overloaded"}`)

		if err := s.Send(t.Context(), channel.OutboundMessage{ChatID: chat, Content: "✅ Started a fresh session.", Key: "k"}); err != nil {
			t.Error(err)
		}
		if err := s.Send(t.Context(), channel.OutboundMessage{ChatID: chat, Content: "✅ Started a fresh session.", Key: "k"}); err != nil {
			t.Error(err)
		}
		wantFrames(t, v, `{"type":"message","content":"✅ Started a fresh session."}`)
		v.say(`{"type":"ping"}`)
		wantFrames(t, v, `{"type":"pong"}`) // and not the message again
	})
}

func TestTurnFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{}, nil)
		v := s.dial("session=")
		chat, log := chatOf(v.session), &conversation{}
		y := s.tell(t.Context(), chat, "t1", log)
		y.write("Before. ")
		y.call("p2", "bash", `{"command":`, `"ls   -l"}`)
		y.send(event.Event{Type: event.PartUpdate, Message: y.message(), Part: "p2", Body: &event.Body{State: event.PartFailed}})
		y.ask("bash")
		y.answered()
		y.open(event.KindText)
		y.write("After.")
		list := v.until(typeAnswered)
		list = append(list, v.until(typeStream)...)
		y.replace("Instead.")
		y.write(" More.")
		y.show("p4", event.Media{URL: "/api/files/1", Name: "a.png", MIME: "image/png"})
		y.end(event.Cancelled, "")
		list = append(list, v.until(typeDone)...)
		if got, want := types(list), "typing stream tool tool tool question answered stream replace stream media stream stream_done"; got != want {
			t.Fatalf("frames %s, want %s", got, want)
		}
		if f := list[3]; f.State != "running" || f.Summary != "ls -l" || f.Name != "bash" || f.Call != "p2" || f.Turn != "t1" {
			t.Errorf("tool %+v", f)
		}
		if f := list[4]; f.State != "failed" {
			t.Errorf("tool %+v", f)
		}
		question := list[5]
		if question.Text != "❓ **bash**\n\nRun it?" || len(question.Choices) != 2 {
			t.Errorf("question %+v", question)
		}
		if f := list[6]; f.Question != question.Question {
			t.Errorf("answered %+v", f)
		}
		if f := list[8]; f.Text != "Before. \n\nInstead." {
			t.Errorf("replace %+v", f)
		}
		if f := list[11]; f.Delta != "\n\n⏹ Stopped before the end of the answer." {
			t.Errorf("last delta %+v", f)
		}
		for i, f := range list {
			if i > 0 && f.ID != list[i-1].ID+1 {
				t.Errorf("number %d after %d", f.ID, list[i-1].ID)
			}
		}
		v.say(`{"type":"answer","question":"` + question.Question + `","choice":1}`)
		if m := <-s.inbox.messages; m.Hints.Command != "answer" || m.Content != channel.AnswerCommand(question.Question, 1) {
			t.Errorf("answer %+v", m)
		}
		v.say(`{"type":"stop"}`)
		if m := <-s.inbox.messages; m.Hints.Command != "stop" || !m.Hints.ForceSync {
			t.Errorf("stop %+v", m)
		}
	})
}

// The error of a turn that ends within code is not code.
func TestErrorAfterCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{}, nil)
		v := s.dial("session=")
		y := s.tell(t.Context(), chatOf(v.session), "t1", &conversation{})
		y.write("```go\nfunc main")
		y.end(event.Failed, "overloaded")
		list := v.until(typeMessage)
		if got := list[len(list)-1].Content; got != "⚠️ overloaded" {
			t.Errorf("%q", got)
		}
	})
}

// A delivery that is repeated shows nothing twice, whether it was interrupted or complete.
func TestRepeatedDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{}, nil)
		v := s.dial("session=")
		chat := chatOf(v.session)
		first := &conversation{}
		y := s.tell(t.Context(), chat, "t1", first)
		y.write("one ", "two ")
		close(y.ch)
		if err := <-y.done; !errors.Is(err, errCut) {
			t.Errorf("error %v, want %v", err, errCut)
		}
		for range 2 {
			y = s.tell(t.Context(), chat, "t1", &conversation{})
			y.write("one ")
			y.write("two ")
			y.write("three")
			y.end(event.Completed, "")
		}
		if err := s.Send(t.Context(), channel.OutboundMessage{ChatID: chat, Content: "end"}); err != nil {
			t.Error(err)
		}
		list := v.until(typeMessage)
		text := ""
		for _, f := range list {
			text += f.Delta
		}
		if got, want := types(list), "typing stream stream stream stream_done message"; got != want || text != "one two three" {
			t.Errorf("frames %s with the text %q, want %s", got, text, want)
		}
	})
}

// An answer to a chat that isn't connected, or doesn't exist, reaches no one else.
func TestNoBroadcast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{}, nil)
		v, other := s.dial("session="), s.dial("session=")
		chat := chatOf(other.session)
		_ = other.CloseNow()
		synctest.Wait()
		y := s.tell(t.Context(), chat, "t1", &conversation{})
		y.write("secret")
		y.end(event.Completed, "")
		if err := s.Send(t.Context(), channel.OutboundMessage{ChatID: chat, Content: "secret"}); err != nil {
			t.Error(err)
		}
		if err := s.Send(t.Context(), channel.OutboundMessage{ChatID: "web-1", Content: "secret"}); !errors.Is(err, channel.ErrUnreachable) {
			t.Errorf("error %v", err)
		}
		if err := s.SendStream(t.Context(), "", channel.StreamMetadata{}, nil); !errors.Is(err, channel.ErrUnreachable) {
			t.Errorf("error %v", err)
		}
		synctest.Wait()
		v.say(`{"type":"ping"}`)
		if f := v.raw(); f != `{"type":"pong"}` {
			t.Errorf("frame %s", f)
		}
		back := s.dial("session=" + other.session + "&after=0")
		if list := back.until(typeMessage); types(list) != "typing stream stream_done message" {
			t.Errorf("frames %s", types(list))
		}
	})
}

// A delivery that is repeated shows the questions of now: not one that was answered meanwhile, and the open one also if the text is
// shorter than before.
func TestRepeatedDeliveryOfShorterText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := open(t, Options{}, nil), &conversation{}
		v := s.dial("session=")
		chat := chatOf(v.session)
		y := s.tell(t.Context(), chat, "t1", log)
		y.write("a long text that is replaced")
		y.ask("first")
		y.answered()
		v.until(typeAnswered)
		close(y.ch)
		<-y.done
		y = s.tell(t.Context(), chat, "t1", &conversation{})
		y.write("a long text that is replaced")
		y.ask("first")
		y.answered()
		y.replace("short")
		y.ask("second")
		list := v.until(typeReplace)
		if got, want := types(list), "replace"; got != want || list[len(list)-1].Text != "short" {
			t.Errorf("frames %s: %+v", got, list)
		}
		var f frame
		if v.next(&f); f.Type != typeQuestion || !strings.Contains(f.Text, "second") {
			t.Errorf("frame %+v", f)
		}
		y.end(event.Cancelled, "")
	})
}
