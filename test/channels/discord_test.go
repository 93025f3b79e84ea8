package channels

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/bwmarrin/discordgo"

	"github.com/leat-dev/leat/chattest/discord"
)

// toServer sends all requests to a test server: the library has the addresses of the API in global variables.
type toServer struct{ host string }

func (t toServer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = "http", t.host, t.host
	return http.DefaultTransport.RoundTrip(r)
}

// openDiscord starts a fake and a bot that is written with discordgo. What the bot receives is sent to the channels.
func openDiscord(t *testing.T) (*discord.Server, *discordgo.Session, <-chan *discordgo.MessageCreate, <-chan *discordgo.InteractionCreate) {
	t.Helper()
	fake := discord.New(discord.Options{Token: "test"})
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	s, err := discordgo.New("Bot test")
	if err != nil {
		t.Fatal(err)
	}
	s.Client = &http.Client{Transport: toServer{address.Host}, Timeout: 20 * time.Second}
	s.Identify.Intents = discordgo.IntentsGuildMessages | discordgo.IntentsDirectMessages | discordgo.IntentMessageContent
	messages, interactions := make(chan *discordgo.MessageCreate, 10), make(chan *discordgo.InteractionCreate, 10)
	s.AddHandler(func(_ *discordgo.Session, m *discordgo.MessageCreate) {
		if !m.Author.Bot {
			messages <- m
		}
	})
	s.AddHandler(func(_ *discordgo.Session, i *discordgo.InteractionCreate) { interactions <- i })
	if err := s.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if v := fake.Violations(); len(v) > 0 {
			t.Errorf("%q", v)
		}
	})
	return fake, s, messages, interactions
}

func receive[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(time.Minute):
		t.Fatal("nothing in a minute")
	}
	return v
}

// A bot receives messages over the gateway, and sends, edits and deletes its own.
func TestDiscordMessages(t *testing.T) {
	fake, s, messages, _ := openDiscord(t)
	ann := discord.Member("50", "7", "Ann")
	first := fake.Say(ann, discord.BotMention+" hello")
	m := receive(t, messages)
	if m.ID != first || m.Content != discord.BotMention+" hello" || m.ChannelID != "50" || m.GuildID == "" {
		t.Fatalf("%+v", m.Message)
	}
	if m.Author.GlobalName != "Ann" || len(m.Mentions) != 1 {
		t.Errorf("%+v", m.Message)
	}
	sent, err := s.ChannelMessageSendComplex("50", &discordgo.MessageSend{
		Content: "Hel", Reference: m.Reference(), AllowedMentions: &discordgo.MessageAllowedMentions{Parse: []discordgo.AllowedMentionType{}},
		Components: []discordgo.MessageComponent{discordgo.ActionsRow{Components: []discordgo.MessageComponent{
			discordgo.Button{Label: "Yes", Style: discordgo.PrimaryButton, CustomID: "/answer x 0"},
		}}},
	})
	if err != nil || sent.ReferencedMessage == nil || sent.ReferencedMessage.ID != first {
		t.Fatalf("%+v, %v", sent, err)
	}
	if edited, err := s.ChannelMessageEdit("50", sent.ID, "Hello"); err != nil || edited.Content != "Hello" || edited.EditedTimestamp == nil {
		t.Errorf("%+v, %v", edited, err)
	}
	if list, err := s.ChannelMessages("50", 10, "", first, ""); err != nil || len(list) != 1 || list[0].ID != sent.ID {
		t.Errorf("%+v, %v", list, err)
	}
	if err := s.ChannelTyping("50"); err != nil || !fake.IsTyping("50") {
		t.Error(err)
	}
	if err := s.ChannelMessageDelete("50", sent.ID); err != nil || len(fake.Visible("50")) != 0 {
		t.Error(err)
	}
	thread, err := s.MessageThreadStart("50", first, "A thread", 60)
	if err != nil || thread.ID != first || !thread.IsThread() {
		t.Errorf("%+v, %v", thread, err)
	}
	fake.Say(discord.Member(thread.ID, "7", "Ann"), "in the thread")
	if m := receive(t, messages); m.ChannelID != thread.ID {
		t.Errorf("%+v", m.Message)
	}
}

// Components V2 are accepted, and files arrive in both directions.
func TestDiscordContent(t *testing.T) {
	fake, s, messages, _ := openDiscord(t)
	ann := discord.Direct("7", "Ann")
	fake.SendFiles(ann, "look", discord.File{Name: "a.txt", Type: "text/plain", Content: []byte("content")})
	m := receive(t, messages)
	if len(m.Attachments) != 1 || m.GuildID != "" {
		t.Fatalf("%+v", m.Message)
	}
	response, err := http.Get(m.Attachments[0].URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if b, err := io.ReadAll(response.Body); err != nil || string(b) != "content" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := s.ChannelFileSendWithMessage(ann.Channel, "here", "b.txt", bytes.NewReader([]byte("back"))); err != nil {
		t.Error(err)
	}
	container := discordgo.Container{Components: []discordgo.MessageComponent{
		discordgo.TextDisplay{Content: "**one**"}, discordgo.TextDisplay{Content: "two"},
	}}
	_, err = s.ChannelMessageSendComplex(ann.Channel, &discordgo.MessageSend{
		Flags: discordgo.MessageFlagsIsComponentsV2, Components: []discordgo.MessageComponent{container},
	})
	if err != nil {
		t.Error(err)
	}
	got := fake.Visible(ann.Channel)
	if len(got) != 2 || got[0].Text != "here" || len(got[0].Files) != 1 || got[1].Text != "**one**\ntwo" {
		t.Fatalf("%+v", got)
	}
	if f := got[0].Files[0]; string(f.Content) != "back" || f.Name != "b.txt" {
		t.Errorf("%+v", f)
	}
}

// Commands are registered, and commands and buttons are interactions.
func TestDiscordInteractions(t *testing.T) {
	fake, s, _, interactions := openDiscord(t)
	ann := discord.Member("50", "7", "Ann")
	fake.Say(ann, "hello")
	application, err := s.Application("@me")
	if err != nil {
		t.Fatal(err)
	}
	commands, err := s.ApplicationCommandBulkOverwrite(application.ID, "", []*discordgo.ApplicationCommand{{
		Name: "agent", Description: "Changes the agent",
		Options: []*discordgo.ApplicationCommandOption{{Name: "name", Description: "its name", Type: discordgo.ApplicationCommandOptionString}},
	}})
	if err != nil || len(commands) != 1 || len(fake.Commands()) != 1 {
		t.Fatalf("%+v, %v", commands, err)
	}
	fake.Invoke(ann, "agent", "name", "helper")
	i := receive(t, interactions)
	if data := i.ApplicationCommandData(); data.Name != "agent" || data.Options[0].StringValue() != "helper" || i.Member.User.ID != "7" {
		t.Errorf("%+v", i.Interaction)
	}
	later := &discordgo.InteractionResponse{Type: discordgo.InteractionResponseDeferredChannelMessageWithSource}
	if err := s.InteractionRespond(i.Interaction, later); err != nil {
		t.Error(err)
	}
	text, row := "done", []discordgo.MessageComponent{discordgo.ActionsRow{Components: []discordgo.MessageComponent{
		discordgo.Button{Label: "Yes", Style: discordgo.SuccessButton, CustomID: "/answer x 0"},
	}}}
	if m, err := s.InteractionResponseEdit(i.Interaction, &discordgo.WebhookEdit{Content: &text, Components: &row}); err != nil || m.Content != "done" {
		t.Errorf("%+v, %v", m, err)
	}
	fake.Press(ann, fake.Visible("50")[0].ID, "Yes")
	i = receive(t, interactions)
	if i.Type != discordgo.InteractionMessageComponent || i.MessageComponentData().CustomID != "/answer x 0" || i.Message == nil {
		t.Errorf("%+v", i.Interaction)
	}
	if err := s.InteractionRespond(i.Interaction, &discordgo.InteractionResponse{Type: discordgo.InteractionResponseDeferredMessageUpdate}); err != nil {
		t.Error(err)
	}
}

// The client understands the limits: it waits out what the headers and a penalty say.
func TestDiscordLimits(t *testing.T) {
	fake, s, messages, _ := openDiscord(t)
	ann := discord.Direct("7", "Ann")
	fake.Say(ann, "hello")
	receive(t, messages)
	const penalty = 300 * time.Millisecond
	fake.Fail(discord.Fault{Route: discord.CreateMessage, Status: http.StatusTooManyRequests, RetryAfter: penalty})
	began := time.Now()
	for range 7 { // two more than a window allows
		if _, err := s.ChannelMessageSend(ann.Channel, "a"); err != nil {
			t.Fatal(err)
		}
	}
	if d := time.Since(began); d < penalty+4*time.Second {
		t.Errorf("it took %v", d)
	}
	refused := 0
	for _, r := range fake.Requests() {
		if r.Status == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused != 1 || len(fake.Visible(ann.Channel)) != 7 {
		t.Errorf("%d requests were refused", refused)
	}
	_, err := s.ChannelMessageSend(ann.Channel, strings.Repeat("a", 2001))
	if e, ok := errors.AsType[*discordgo.RESTError](err); !ok || e.Message.Code != discordgo.ErrCodeInvalidFormBody {
		t.Error(err)
	}
	_, err = s.ChannelMessageEdit(ann.Channel, "1", "a")
	if e, ok := errors.AsType[*discordgo.RESTError](err); !ok || e.Message.Code != discordgo.ErrCodeUnknownMessage {
		t.Error(err)
	}
}

// After a broken connection, and after a request to reconnect, the session is resumed, and no message is lost.
func TestDiscordResume(t *testing.T) {
	fake, s, messages, _ := openDiscord(t)
	resumed := make(chan *discordgo.Resumed, 1)
	s.AddHandler(func(_ *discordgo.Session, r *discordgo.Resumed) { resumed <- r })
	ann := discord.Direct("7", "Ann")
	for _, interrupt := range []func(){fake.Drop, fake.AskReconnect} {
		fake.Say(ann, "before")
		receive(t, messages)
		interrupt()
		fake.Say(ann, "meanwhile")
		if m := receive(t, messages); m.Content != "meanwhile" {
			t.Errorf("%+v", m.Message)
		}
		receive(t, resumed)
	}
	if n := fake.Sessions(); n != 1 {
		t.Errorf("%d sessions", n)
	}
}
