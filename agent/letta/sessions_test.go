package letta

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

// listedConversations are the conversations that the fake App Server lists, with the fields of the real one.
const listedConversations = `[
	{"id":"local-conv-7","agent_id":"agent-1","summary":null,"created_at":"2026-11-20T10:00:00Z","updated_at":"2026-11-20T10:00:00Z","last_message_at":null},
	{"id":"local-conv-8","agent_id":"agent-1","summary":"A plan","created_at":"2026-11-20T10:00:00Z","updated_at":"2026-11-20T10:00:00Z","last_message_at":"2026-11-21T10:00:00Z"}]`

func TestAppServerListsSessions(t *testing.T) {
	f := newAppServer(t)
	f.mu.Lock()
	c, _ := f.conv("agent-1", ownConversation)
	c.past = []map[string]any{{"id": "1", "message_type": rowUser, "otid": "x", "date": "2026-11-20T12:00:00Z", "content": "hello"}}
	f.mu.Unlock()
	got, err := f.agent(nil).ListSessions(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	want := []agent.SessionInfo{
		{ID: "local-conv-8", Title: "A plan", Updated: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)},
		{ID: ownConversation, Title: ownTitle, Updated: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)},
		{ID: "local-conv-7", Updated: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the sessions are %+v, want %+v", got, want)
	}
	if got, err = f.agent(nil).ListSessions(t.Context(), 1); err != nil || !reflect.DeepEqual(got, want[:1]) {
		t.Errorf("one session is %+v, %v", got, err)
	}
	got, err = f.agent(map[string]string{"agent": "agent-{subject}"}).ListSessions(t.Context(), 10)
	if err != nil || len(got) != 2 { // many agents have no common default conversation
		t.Errorf("with a template: %+v, %v", got, err)
	}
}

func TestAppServerAttach(t *testing.T) {
	for _, history := range []bool{true, false} {
		f := newAppServer(t)
		f.scripts = [][]string{{"One."}, {"think Hm. ", "Two."}, {"Three ", "gate live", "and more."}, {"Four."}}
		k := f.agent(nil)
		conn := f.watch(ownConversation)
		for i, text := range []string{"first", "second"} {
			speak(t, conn, theirs, text, text)
			f.until("answered", func() bool {
				c := f.convs[ownConversation]
				return c.cancel == nil && !c.ending && len(c.past) == 2+3*i
			})
		}
		speak(t, conn, theirs, "third", "third")
		f.until("the run in progress", func() bool { return len(f.convs[ownConversation].past) == 7 })
		got, err := k.Attach(t.Context(), ownConversation, history)
		if err != nil {
			t.Fatal(err)
		}
		b := newBook(t, theirs)
		if string(got.Session) != string(b.sess) {
			t.Errorf("the session is %s, want %s", got.Session, b.sess)
		}
		b.cursor = got.Cursor
		b.follow(k)
		n := 0
		if history {
			if len(got.Entries) != 4 {
				t.Fatalf("%d entries, want two messages and two answers: %+v", len(got.Entries), got.Entries)
			}
			theirMessage(t, got.Entries[0], "first")
			theirMessage(t, got.Entries[2], "second")
			for i, text := range map[int]string{1: "One.", 3: "Two."} {
				wantRun(t, got.Entries[i], text)
			}
			n = 2 // the unfinished run is left to Follow
			all := b.wait(n)
			theirMessage(t, all[0], "third")
			s := observed(t, k, all[1])
			s.untilText("Three ")
			close(f.gate("live"))
			s.want(event.Completed, "", "Three and more.")
		} else {
			if len(got.Entries) != 0 {
				t.Errorf("%d entries, want none", len(got.Entries))
			}
			close(f.gate("live"))
			f.until("answered", func() bool { c := f.convs[ownConversation]; return c.cancel == nil && !c.ending })
		}
		speak(t, conn, theirs, "fourth", "fourth")
		theirMessage(t, b.wait(n + 2)[n], "fourth")
	}
}

// wantRun checks a run that has ended.
func wantRun(t *testing.T, e agent.Entry, text string) {
	t.Helper()
	s := newStage(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.emit(e.Run.Ops)
	if got := s.fold.Visible(turnID); got != text || s.fold.Turn(turnID).Outcome != event.Completed {
		t.Errorf("a run said %q and ended %s, want %q", got, s.fold.Turn(turnID).Outcome, text)
	}
}

func TestAppServerAttachTitleAndUnknown(t *testing.T) {
	f := newAppServer(t)
	k := f.agent(nil)
	f.mu.Lock()
	f.convs["local-conv-8"] = newConv("local-conv-8", "agent-1")
	f.convs["local-conv-7"] = newConv("local-conv-7", "agent-2")
	f.mu.Unlock()
	got, err := k.Attach(t.Context(), "local-conv-8", true)
	if err != nil || got.Title != "A plan" {
		t.Errorf("the attachment is %+v, %v", got, err)
	}
	var s session
	if json.Unmarshal(got.Session, &s) != nil || s != (session{Agent: "agent-1", Conversation: "local-conv-8"}) {
		t.Errorf("the session is %s", got.Session)
	}
	for _, id := range []string{"local-conv-9", "local-conv-7", ""} {
		if _, err := k.Attach(t.Context(), id, true); !errors.Is(err, agent.ErrUnknownSession) {
			t.Errorf("session %q: %v, want ErrUnknownSession", id, err)
		}
	}
}
