package dendrite

import (
	"context"
	"sync"
	"testing"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
)

// person is a user with a client that is written with mautrix.
type person struct {
	*mautrix.Client

	mu     sync.Mutex
	events []*event.Event // messages and redactions, in the order in which they arrived
}

// newPerson registers a user and receives what happens in the user's rooms until the test ends.
func newPerson(t *testing.T, server, name string) *person {
	t.Helper()
	user, token := register(t, server, name)
	client, err := mautrix.NewClient(server, id.UserID(user), token)
	if err != nil {
		t.Fatal(err)
	}
	p := &person{Client: client}
	add := func(_ context.Context, e *event.Event) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.events = append(p.events, e)
	}
	syncer := client.Syncer.(*mautrix.DefaultSyncer)
	syncer.OnEventType(event.EventMessage, add)
	syncer.OnEventType(event.EventRedaction, add)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = client.SyncWithContext(ctx) // it ends with ctx
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return p
}

// invite makes a room with a bot and waits until the bot has joined.
func (p *person) invite(t *testing.T, bot string) id.RoomID {
	t.Helper()
	room, err := p.CreateRoom(t.Context(), &mautrix.ReqCreateRoom{Preset: "trusted_private_chat", IsDirect: true, Invite: []id.UserID{id.UserID(bot)}})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the bot has joined", func() bool {
		members, err := p.JoinedMembers(t.Context(), room.RoomID)
		return err == nil && len(members.Joined) == 2
	})
	return room.RoomID
}

// say writes a message.
func (p *person) say(t *testing.T, room id.RoomID, text string) id.EventID {
	t.Helper()
	sent, err := p.SendText(t.Context(), room, text)
	if err != nil {
		t.Fatal(err)
	}
	return sent.EventID
}

// message is a message of the bot as a client shows it.
type message struct {
	id      id.EventID
	kind    event.MessageType
	text    string
	html    string
	isLive  bool
	file    id.ContentURIString
	thread  id.EventID
	edits   []id.EventID
	removed bool
}

// seen returns the messages of the bot in a room, with the edits and redactions that have arrived.
func (p *person) seen(room id.RoomID, bot string) []*message {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []*message
	byID := map[id.EventID]*message{}
	for _, e := range p.events {
		if e.RoomID != room || e.Sender.String() != bot {
			continue
		}
		if e.Type == event.EventRedaction {
			redacted := e.Redacts
			if redacted == "" {
				redacted = e.Content.AsRedaction().Redacts
			}
			if m := byID[redacted]; m != nil && m.id == redacted {
				m.removed = true
			}
			continue
		}
		content := e.Content.AsMessage()
		_, isLive := e.Content.Raw["org.matrix.msc4357.live"]
		original := content.OptionalGetRelatesTo().GetReplaceID()
		m := byID[original]
		switch {
		case original == "":
			m = &message{id: e.ID, thread: content.OptionalGetRelatesTo().GetThreadParent(), file: content.URL}
			list = append(list, m)
			byID[e.ID] = m
		case m == nil || content.NewContent == nil:
			continue
		default:
			m.edits = append(m.edits, e.ID)
			content = content.NewContent
		}
		m.kind, m.text, m.html, m.isLive = content.MsgType, content.Body, content.FormattedBody, isLive
	}
	return list
}

// eventually waits until something is true.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for begin := time.Now(); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("after a minute not: %s", what)
		}
	}
}
