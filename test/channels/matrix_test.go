package channels

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"github.com/leat-dev/leat/chattest/matrix"
)

// openMatrix starts a fake and a client that is written with mautrix, which has logged in.
func openMatrix(t *testing.T, o matrix.Options) (*matrix.Server, *mautrix.Client) {
	t.Helper()
	o.Token, o.Password = "secret", "password"
	fake := matrix.New(o)
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	client, err := mautrix.NewClient(server.URL, "", "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Login(t.Context(), &mautrix.ReqLogin{
		Type: mautrix.AuthTypePassword, Identifier: mautrix.UserIdentifier{Type: mautrix.IdentifierTypeUser, User: "leat"}, Password: o.Password,
		StoreCredentials: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return fake, client
}

// syncMatrix runs the client's sync loop. What it receives is sent to the channel.
func syncMatrix(t *testing.T, client *mautrix.Client) <-chan *event.Event {
	t.Helper()
	events := make(chan *event.Event, 100)
	syncer := client.Syncer.(*mautrix.DefaultSyncer)
	syncer.OnEvent(func(_ context.Context, e *event.Event) { events <- e })
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
	return events
}

// find waits for an event.
func find(t *testing.T, events <-chan *event.Event, is func(*event.Event) bool) *event.Event {
	t.Helper()
	for limit := time.After(time.Minute); ; {
		select {
		case e := <-events:
			if is(e) {
				return e
			}
		case <-limit:
			t.Fatal("no such event in a minute")
		}
	}
}

// A bot accepts an invitation, receives messages, and sends, edits and redacts its own.
func TestMatrixMessages(t *testing.T) {
	fake, client := openMatrix(t, matrix.Options{Name: "Leat"})
	events := syncMatrix(t, client)
	ann := fake.Invite("@ann:matrix.test", "Ann")
	invitation := find(t, events, func(e *event.Event) bool {
		return e.Type == event.StateMember && e.GetStateKey() == client.UserID.String()
	})
	if m := invitation.Content.AsMember(); m.Membership != event.MembershipInvite || !m.IsDirect {
		t.Errorf("%+v", m)
	}
	room := id.RoomID(ann.Room)
	if _, err := client.JoinRoomByID(t.Context(), room); err != nil {
		t.Fatal(err)
	}
	said := fake.Say(ann, "hello")
	m := find(t, events, func(e *event.Event) bool { return e.ID.String() == said })
	if m.Content.AsMessage().Body != "hello" || m.Sender != "@ann:matrix.test" || m.RoomID != room {
		t.Errorf("%+v", m)
	}
	members, err := client.JoinedMembers(t.Context(), room)
	if err != nil || len(members.Joined) != 2 || members.Joined["@ann:matrix.test"].DisplayName != "Ann" {
		t.Errorf("%+v, %v", members, err)
	}
	if _, err := client.UserTyping(t.Context(), room, true, time.Minute); err != nil || !fake.IsTyping(ann.Room) {
		t.Error(err)
	}
	if err := client.MarkRead(t.Context(), room, m.ID); err != nil || fake.Read(ann.Room) != said {
		t.Error(err)
	}
	content := &event.MessageEventContent{
		MsgType: event.MsgText, Body: "**bold**", Format: event.FormatHTML, FormattedBody: "<strong>bold</strong>",
		RelatesTo: (&event.RelatesTo{}).SetReplyTo(m.ID),
	}
	sent, err := client.SendMessageEvent(t.Context(), room, event.EventMessage, content)
	if err != nil {
		t.Fatal(err)
	}
	changed := &event.MessageEventContent{MsgType: event.MsgText, Body: "plain"}
	changed.SetEdit(sent.EventID)
	edit, err := client.SendMessageEvent(t.Context(), room, event.EventMessage, changed)
	if err != nil {
		t.Fatal(err)
	}
	if v := fake.Visible(ann.Room); len(v) != 1 || v[0].Text != "plain" || v[0].Versions[0] != "**bold**" || v[0].ReplyTo != said {
		t.Errorf("%+v", v)
	}
	find(t, events, func(e *event.Event) bool {
		return e.Content.AsMessage().OptionalGetRelatesTo().GetReplaceID() == sent.EventID
	})
	list, err := client.GetRelations(t.Context(), room, sent.EventID, &mautrix.ReqGetRelations{RelationType: event.RelReplace})
	if err != nil || len(list.Chunk) != 1 || list.Chunk[0].ID != edit.EventID {
		t.Errorf("%+v, %v", list, err)
	}
	for _, e := range []id.EventID{edit.EventID, sent.EventID} {
		if _, err := client.RedactEvent(t.Context(), room, e); err != nil {
			t.Error(err)
		}
	}
	if e, err := client.GetEvent(t.Context(), room, sent.EventID); err != nil || e.Unsigned.RedactedBecause == nil {
		t.Errorf("%+v, %v", e, err)
	}
	if len(fake.Visible(ann.Room)) != 0 || len(fake.Leftovers(ann.Room)) != 0 || len(fake.Violations()) != 0 {
		t.Errorf("%+v %v", fake.Messages(ann.Room), fake.Violations())
	}
}

// A repeated transaction id sends nothing.
func TestMatrixTransactions(t *testing.T) {
	fake, client := openMatrix(t, matrix.Options{})
	ann := fake.Direct("@ann:matrix.test", "Ann")
	ids := map[id.EventID]bool{}
	for _, text := range []string{"one", "another"} {
		content := &event.MessageEventContent{MsgType: event.MsgText, Body: text}
		sent, err := client.SendMessageEvent(t.Context(), id.RoomID(ann.Room), event.EventMessage, content, mautrix.ReqSendEvent{TransactionID: "t1"})
		if err != nil {
			t.Fatal(err)
		}
		ids[sent.EventID] = true
	}
	if v := fake.Visible(ann.Room); len(ids) != 1 || len(v) != 1 || v[0].Text != "one" {
		t.Errorf("%v, %+v", ids, v)
	}
}

// Files and account data come back as they were stored.
func TestMatrixFiles(t *testing.T) {
	_, client := openMatrix(t, matrix.Options{})
	stored, err := client.UploadBytesWithName(t.Context(), []byte("a,b\n"), "text/csv", "table.csv")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := client.DownloadBytes(t.Context(), stored.ContentURI); err != nil || string(b) != "a,b\n" {
		t.Errorf("%q, %v", b, err)
	}
	var data struct{ Since string }
	if err := client.SetAccountData(t.Context(), "dev.leat.test", map[string]string{"since": "s1"}); err != nil {
		t.Fatal(err)
	}
	if err := client.GetAccountData(t.Context(), "dev.leat.test", &data); err != nil || data.Since != "s1" {
		t.Errorf("%+v, %v", data, err)
	}
}

// Refusals are those that the client knows.
func TestMatrixRefusals(t *testing.T) {
	fake, client := openMatrix(t, matrix.Options{Rate: 0.2, Burst: 1, IsSynapse: true})
	ann := fake.Direct("@ann:matrix.test", "Ann")
	client.IgnoreRateLimit = true
	if _, err := client.SendText(t.Context(), id.RoomID(ann.Room), strings.Repeat("a", 66000)); !errors.Is(err, mautrix.MTooLarge) {
		t.Errorf("too large: %v", err)
	}
	if _, err := client.SendText(t.Context(), "!other:matrix.test", "a"); !errors.Is(err, mautrix.MForbidden) {
		t.Errorf("unknown room: %v", err)
	}
	if _, err := client.SendText(t.Context(), id.RoomID(ann.Room), "a"); err != nil {
		t.Error(err)
	}
	_, err := client.SendText(t.Context(), id.RoomID(ann.Room), "b")
	refusal, ok := errors.AsType[mautrix.HTTPError](err)
	if !ok || !errors.Is(err, mautrix.MLimitExceeded) || refusal.RespError.ExtraData["retry_after_ms"].(float64) <= 0 {
		t.Errorf("too fast: %v", err)
	}
	fake.Revoke()
	if _, err := client.Whoami(t.Context()); !errors.Is(err, mautrix.MUnknownToken) {
		t.Errorf("revoked: %v", err)
	}
}
