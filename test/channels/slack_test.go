package channels

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	client "github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"

	"github.com/leat-dev/leat/chattest/slack"
)

var (
	slackAnn    = slack.Direct("D7", "U7", "Ann")
	slackMember = slack.Member("C1", "U7", "Ann")
)

// openSlack starts a fake and a client that is written with slack-go.
func openSlack(t *testing.T, o slack.Options) (*slack.Server, *client.Client) {
	t.Helper()
	o.Token, o.AppToken, o.SigningSecret = "xoxb-test", "xapp-test", "secret"
	fake := slack.New(o)
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	fake.Say(slackAnn, "first")
	fake.Say(slackMember, "first")
	return fake, client.New(o.Token, client.OptionAPIURL(server.URL+"/api/"), client.OptionAppLevelToken(o.AppToken))
}

// connect opens a connection of Socket Mode. What arrives is acknowledged and sent to the channel.
func connect(t *testing.T, api *client.Client) <-chan socketmode.Event {
	t.Helper()
	sm := socketmode.New(api)
	ctx, cancel := context.WithCancel(t.Context())
	events, done := make(chan socketmode.Event, 10), make(chan struct{})
	go func() {
		defer close(done)
		_ = sm.RunContext(ctx) // ends with the context
	}()
	go func() {
		for {
			select {
			case e := <-sm.Events:
				if e.Request != nil && e.Request.EnvelopeID != "" {
					if err := sm.Ack(*e.Request); err != nil {
						t.Error(err)
					}
				}
				events <- e
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return events
}

// await returns the next event of a type. Others are skipped.
func await(t *testing.T, events <-chan socketmode.Event, kind socketmode.EventType) socketmode.Event {
	t.Helper()
	for {
		select {
		case e := <-events:
			if e.Type == kind {
				return e
			}
		case <-time.After(time.Minute):
			t.Fatalf("no %s in a minute", kind)
		}
	}
}

// messageOf returns the message of an event.
func messageOf(t *testing.T, e socketmode.Event) *slackevents.MessageEvent {
	t.Helper()
	outer, ok := e.Data.(slackevents.EventsAPIEvent)
	if !ok {
		t.Fatalf("%+v", e.Data)
	}
	m, ok := outer.InnerEvent.Data.(*slackevents.MessageEvent)
	if !ok {
		t.Fatalf("%+v", outer.InnerEvent)
	}
	return m
}

// A bot receives messages, mentions, buttons and commands by Socket Mode, also after it was asked to reconnect.
func TestSlackSocketMode(t *testing.T) {
	fake, api := openSlack(t, slack.Options{})
	events := connect(t, api)
	if m := messageOf(t, await(t, events, socketmode.EventTypeEventsAPI)); m.Text != "first" || m.User != "U7" || m.Channel != "D7" ||
		m.ChannelType != "im" {
		t.Errorf("%+v", m)
	}
	await(t, events, socketmode.EventTypeEventsAPI)
	thread := slackMember
	thread.Thread = fake.Messages("C1")[0].TS
	said := fake.Say(thread, "help "+fake.Mention())
	if m := messageOf(t, await(t, events, socketmode.EventTypeEventsAPI)); m.ThreadTimeStamp != thread.Thread || m.TimeStamp != said {
		t.Errorf("%+v", m)
	}
	outer := await(t, events, socketmode.EventTypeEventsAPI).Data.(slackevents.EventsAPIEvent)
	if m, ok := outer.InnerEvent.Data.(*slackevents.AppMentionEvent); !ok || m.TimeStamp != said || m.Text != "help <@UBOT>" {
		t.Errorf("%+v", outer.InnerEvent.Data)
	}
	_, ts, err := api.PostMessageContext(t.Context(), "D7", client.MsgOptionText("sure?", false), client.MsgOptionBlocks(
		client.NewSectionBlock(client.NewTextBlockObject(client.MarkdownType, "sure?", false, false), nil, nil),
		client.NewActionBlock("q", client.NewButtonBlockElement("q0", "/answer x 0", client.NewTextBlockObject(client.PlainTextType, "Yes", false, false))),
	))
	if err != nil {
		t.Fatal(err)
	}
	await(t, events, socketmode.EventTypeEventsAPI) // the bot's own message
	fake.Press(slackAnn, ts, "Yes")
	press, ok := await(t, events, socketmode.EventTypeInteractive).Data.(client.InteractionCallback)
	if !ok || press.Type != client.InteractionTypeBlockActions || press.ActionCallback.BlockActions[0].Value != "/answer x 0" ||
		press.Channel.ID != "D7" || press.User.ID != "U7" {
		t.Errorf("%+v", press)
	}
	fake.Disconnect("refresh_requested")
	await(t, events, socketmode.EventTypeConnected)
	fake.Command(slackAnn, "/new", "now")
	if c, ok := await(t, events, socketmode.EventTypeSlashCommand).Data.(client.SlashCommand); !ok || c.Command != "/new" ||
		c.Text != "now" || c.ChannelID != "D7" {
		t.Errorf("%+v", c)
	}
	for _, v := range fake.Violations() {
		t.Error(v)
	}
}

// A bot sends, edits and deletes messages, and finds them by their metadata.
func TestSlackMessages(t *testing.T) {
	fake, api := openSlack(t, slack.Options{})
	if a, err := api.AuthTestContext(t.Context()); err != nil || a.UserID != "UBOT" || a.TeamID != "T1" {
		t.Errorf("%+v, %v", a, err)
	}
	if u, err := api.GetUserInfoContext(t.Context(), "U7"); err != nil || u.Profile.DisplayName != "Ann" || u.TeamID != "T1" {
		t.Errorf("%+v, %v", u, err)
	}
	first := fake.Messages("D7")[0].TS
	meta := client.SlackMetadata{EventType: "leat_message", EventPayload: map[string]any{"key": "k1"}}
	_, ts, err := api.PostMessageContext(t.Context(), "D7", client.MsgOptionText("*hi*", false), client.MsgOptionTS(first),
		client.MsgOptionMetadata(meta), client.MsgOptionDisableLinkUnfurl(), client.MsgOptionDisableMediaUnfurl())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, text, err := api.UpdateMessageContext(t.Context(), "D7", ts, client.MsgOptionText("*hello*", false)); err != nil || text != "*hello*" {
		t.Errorf("%q, %v", text, err)
	}
	thread := client.GetConversationRepliesParameters{ChannelID: "D7", Timestamp: first, IncludeAllMetadata: true}
	replies, _, _, err := api.GetConversationRepliesContext(t.Context(), &thread)
	if err != nil || len(replies) != 2 || replies[1].Metadata.EventPayload["key"] != "k1" || replies[1].BotID == "" {
		t.Errorf("%+v, %v", replies, err)
	}
	history, err := api.GetConversationHistoryContext(t.Context(), &client.GetConversationHistoryParameters{ChannelID: "D7", Limit: 1})
	if err != nil || len(history.Messages) != 1 || history.Messages[0].Text != "first" || history.HasMore {
		t.Errorf("%+v, %v", history, err)
	}
	if m := fake.Visible("D7"); len(m) != 1 || m[0].Unfurls || m[0].Text != "*hello*" || m[0].Thread != first {
		t.Errorf("%+v", m)
	}
	status := client.AssistantThreadsSetStatusParameters{ChannelID: "D7", ThreadTS: first, Status: "is thinking..."}
	if err := api.SetAssistantThreadsStatusContext(t.Context(), status); err != nil {
		t.Error(err)
	}
	if s := fake.Status("D7", first); s != "is thinking..." {
		t.Error(s)
	}
	if _, _, err := api.DeleteMessageContext(t.Context(), "D7", ts); err != nil {
		t.Error(err)
	}
	if m := fake.Visible("D7"); len(m) != 0 {
		t.Errorf("%+v", m)
	}
}

// Streams of text and of chunks are started, appended to and stopped.
func TestSlackStreams(t *testing.T) {
	fake, api := openSlack(t, slack.Options{})
	in := client.MsgOptionTS(fake.Messages("C1")[0].TS)
	_, _, err := api.StartStreamContext(t.Context(), "C1", in)
	if refusal, ok := errors.AsType[client.SlackErrorResponse](err); !ok || refusal.Err != "missing_recipient_user_id" {
		t.Error(err)
	}
	to := []client.MsgOption{in, client.MsgOptionRecipientUserID("U7"), client.MsgOptionRecipientTeamID("T1")}
	_, ts, err := api.StartStreamContext(t.Context(), "C1", append(to, client.MsgOptionMarkdownText("**Hel"))...)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := api.AppendStreamContext(t.Context(), "C1", ts, client.MsgOptionMarkdownText("lo**")); err != nil {
		t.Error(err)
	}
	if _, _, err := api.StopStreamContext(t.Context(), "C1", ts, client.MsgOptionMarkdownText(" Ann")); err != nil {
		t.Error(err)
	}
	if _, _, err := api.AppendStreamContext(t.Context(), "C1", ts, client.MsgOptionMarkdownText("!")); err == nil ||
		err.Error() != "message_not_in_streaming_state" {
		t.Error(err)
	}
	_, tasks, err := api.StartStreamContext(t.Context(), "C1", to...)
	if err != nil {
		t.Fatal(err)
	}
	running := client.NewTaskUpdateChunk("1", "bash")
	running.Status = client.TaskCardStatusInProgress
	done := running
	done.Status, done.Output = client.TaskCardStatusComplete, "ok"
	if _, _, err := api.AppendStreamContext(t.Context(), "C1", tasks, client.MsgOptionChunks(running, client.NewMarkdownTextChunk("text"))); err != nil {
		t.Error(err)
	}
	if _, _, err := api.StopStreamContext(t.Context(), "C1", tasks, client.MsgOptionChunks(done)); err != nil {
		t.Error(err)
	}
	if m := fake.Visible("C1"); len(m) != 2 || m[0].Text != "**Hello** Ann" || m[1].Text != "text" || m[1].Tasks[0].Status != "complete" ||
		m[1].Streaming {
		t.Errorf("%+v", m)
	}
}

// Refusals are those that the client knows.
func TestSlackRefusals(t *testing.T) {
	fake, api := openSlack(t, slack.Options{Gap: time.Minute})
	post := func(channel string, options ...client.MsgOption) error {
		_, _, err := api.PostMessageContext(t.Context(), channel, options...)
		return err
	}
	if err := post("D7", client.MsgOptionText("a", false)); err != nil {
		t.Fatal(err)
	}
	err := post("D7", client.MsgOptionText("b", false))
	if limit, ok := errors.AsType[*client.RateLimitedError](err); !ok || limit.RetryAfter < 55*time.Second || limit.RetryAfter > time.Minute {
		t.Errorf("too fast: %v", err)
	}
	if err := post("D9", client.MsgOptionText("a", false)); err == nil || err.Error() != "channel_not_found" {
		t.Error(err)
	}
	if err := post("C1", client.MsgOptionText("", false)); err == nil || err.Error() != "no_text" {
		t.Error(err)
	}
	fake.Fail(slack.Fault{Method: "chat.postMessage", Status: http.StatusBadGateway})
	if status, ok := errors.AsType[client.StatusCodeError](post("C1", client.MsgOptionText("a", false))); !ok || status.Code != http.StatusBadGateway {
		t.Error(status)
	}
	fake.Archive("C1")
	if err := post("C1", client.MsgOptionText("a", false)); err == nil || err.Error() != "is_archived" {
		t.Error(err)
	}
}

// Files are sent in three steps and received with the token.
func TestSlackFiles(t *testing.T) {
	fake, api := openSlack(t, slack.Options{})
	file := client.UploadFileParameters{Reader: strings.NewReader("a,b\n"), FileSize: 4, Filename: "table.csv", Channel: "D7"}
	if _, err := api.UploadFileContext(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	if m := fake.Visible("D7"); len(m) != 1 || m[0].Files[0].Name != "table.csv" || string(m[0].Files[0].Content) != "a,b\n" {
		t.Errorf("%+v", m)
	}
	events := connect(t, api)
	await(t, events, socketmode.EventTypeEventsAPI)
	await(t, events, socketmode.EventTypeEventsAPI)
	fake.SendFile(slackAnn, slack.File{Name: "in.txt", Type: "text/plain", Content: []byte("inside")}, "read this")
	m := messageOf(t, await(t, events, socketmode.EventTypeEventsAPI))
	if m.SubType != client.MsgSubTypeFileShare || m.Message == nil || len(m.Message.Files) != 1 {
		t.Fatalf("%+v", m)
	}
	var content bytes.Buffer
	if err := api.GetFileContext(t.Context(), m.Message.Files[0].URLPrivateDownload, &content); err != nil || content.String() != "inside" {
		t.Errorf("%q, %v", content.String(), err)
	}
}

// The client accepts the signatures and the bodies of the Events API.
func TestSlackEventsAPI(t *testing.T) {
	fake, _ := openSlack(t, slack.Options{})
	r := fake.NextRequest("/hook")
	verifier, err := client.NewSecretsVerifier(r.Header, "secret")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(io.TeeReader(r.Body, &verifier))
	if err != nil {
		t.Fatal(err)
	}
	if err := verifier.Ensure(); err != nil {
		t.Error(err)
	}
	outer, err := slackevents.ParseEvent(json.RawMessage(body), slackevents.OptionNoVerifyToken())
	if err != nil || outer.Type != slackevents.CallbackEvent || outer.TeamID != "T1" {
		t.Errorf("%+v, %v", outer, err)
	}
	for fake.NextRequest("/hook") != nil {
	}
	fake.Command(slackAnn, "/stop", "")
	if c, err := client.SlashCommandParse(fake.NextRequest("/hook")); err != nil || c.Command != "/stop" || c.UserID != "U7" {
		t.Errorf("%+v, %v", c, err)
	}
	challenge, err := io.ReadAll(fake.Challenge("/hook", "c1").Body)
	if err != nil {
		t.Fatal(err)
	}
	if outer, err := slackevents.ParseEvent(json.RawMessage(challenge), slackevents.OptionNoVerifyToken()); err != nil ||
		outer.Type != slackevents.URLVerification {
		t.Errorf("%+v, %v", outer, err)
	}
}
