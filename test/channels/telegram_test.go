package channels

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"github.com/leat-dev/leat/chattest/telegram"
)

// open starts a fake and a bot that is written with go-telegram/bot. What the bot receives is sent to the channel.
func open(t *testing.T, o telegram.Options) (*telegram.Server, *bot.Bot, <-chan *models.Update) {
	t.Helper()
	o.Token = "1:test"
	fake := telegram.New(o)
	server := httptest.NewServer(fake)
	updates := make(chan *models.Update, 10)
	b, err := bot.New(o.Token, bot.WithServerURL(server.URL), bot.WithAllowedUpdates(bot.AllowedUpdates{"message", "stopped_message_generation"}),
		bot.WithDefaultHandler(func(_ context.Context, _ *bot.Bot, u *models.Update) { updates <- u }))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.Start(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		server.CloseClientConnections()
		<-done
		server.Close()
	})
	return fake, b, updates
}

func next(t *testing.T, updates <-chan *models.Update) *models.Update {
	t.Helper()
	select {
	case u := <-updates:
		return u
	case <-time.After(time.Minute):
		t.Fatal("no update in a minute")
		return nil
	}
}

// A bot receives messages, and sends, edits and deletes its own.
func TestTelegramMessages(t *testing.T) {
	fake, b, updates := open(t, telegram.Options{})
	ann := telegram.Group(-100, 7, "Ann")
	ann.Thread = 5
	first := fake.Say(ann, "hello")
	m := next(t, updates).Message
	if m == nil || m.Text != "hello" || m.From.FirstName != "Ann" || m.Chat.ID != -100 || m.MessageThreadID != 5 || int64(m.ID) != first {
		t.Fatalf("%+v", m)
	}
	sent, err := b.SendMessage(t.Context(), &bot.SendMessageParams{
		ChatID: -100, MessageThreadID: 5, Text: "<b>bold</b> &lt;text&gt; 👍🏽", ParseMode: models.ParseModeHTML, DisableNotification: true,
		ReplyParameters: &models.ReplyParameters{MessageID: int(first)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if sent.Text != "bold <text> 👍🏽" || len(sent.Entities) != 1 || sent.Entities[0].Length != 4 || sent.ReplyToMessage == nil {
		t.Errorf("%+v", sent)
	}
	edited, err := b.EditMessageText(t.Context(), &bot.EditMessageTextParams{
		ChatID: -100, MessageID: sent.ID, Text: "👍🏽 link", Entities: []models.MessageEntity{{Type: models.MessageEntityTypeTextLink, Offset: 5, Length: 4, URL: "https://example.com"}},
	})
	if err != nil || edited.Text != "👍🏽 link" {
		t.Errorf("%+v, %v", edited, err)
	}
	fake.Reply(ann, int64(sent.ID), "a reply")
	if m := next(t, updates).Message; m.ReplyToMessage == nil || m.ReplyToMessage.From.ID != 1 {
		t.Errorf("%+v", m)
	}
	if ok, err := b.DeleteMessage(t.Context(), &bot.DeleteMessageParams{ChatID: -100, MessageID: sent.ID}); !ok || err != nil {
		t.Error(err)
	}
	if m := fake.Visible(-100); len(m) != 0 {
		t.Errorf("%+v", m)
	}
}

// A draft is shown until a message arrives; its stop button is an update.
func TestTelegramDraft(t *testing.T) {
	fake, b, updates := open(t, telegram.Options{})
	fake.Say(telegram.Private(7, "Ann"), "hello")
	next(t, updates)
	if ok, err := b.SendMessageDraft(t.Context(), &bot.SendMessageDraftParams{ChatID: 7, DraftID: "9", Text: "Hel"}); !ok || err != nil {
		t.Fatal(err)
	}
	if text, id, ok := fake.Draft(7, 0); !ok || text != "Hel" || id != 9 {
		t.Errorf("%q, %d, %v", text, id, ok)
	}
	rich := models.InputRichMessage{HTML: "<h2>Title</h2><p>Hel</p>", SkipEntityDetection: true}
	if ok, err := b.SendRichMessageDraft(t.Context(), &bot.SendRichMessageDraftParams{ChatID: 7, DraftID: 9, RichMessage: rich}); !ok || err != nil {
		t.Fatal(err)
	}
	if text, id, ok := fake.Draft(7, 0); !ok || text != "Title\nHel" || id != 9 {
		t.Errorf("%q, %d, %v", text, id, ok)
	}
	if _, err := b.SendMessage(t.Context(), &bot.SendMessageParams{ChatID: 7, Text: "Hello"}); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := fake.Draft(7, 0); ok {
		t.Error("the draft outlived the message")
	}
}

// Refusals are those that the client knows.
func TestTelegramRefusals(t *testing.T) {
	fake, b, updates := open(t, telegram.Options{GroupGap: time.Minute})
	fake.Say(telegram.Private(7, "Ann"), "hello")
	next(t, updates)
	fake.Say(telegram.Group(-100, 7, "Ann"), "hello")
	next(t, updates)
	send := func(p bot.SendMessageParams) error {
		_, err := b.SendMessage(t.Context(), &p)
		return err
	}
	for name, c := range map[string]struct {
		p    bot.SendMessageParams
		want string
	}{
		"no text":      {bot.SendMessageParams{ChatID: 7}, "message text is empty"},
		"too long":     {bot.SendMessageParams{ChatID: 7, Text: strings.Repeat("a", 4097)}, "message is too long"},
		"tag":          {bot.SendMessageParams{ChatID: 7, Text: "<p>a</p>", ParseMode: models.ParseModeHTML}, "Unsupported start tag"},
		"open tag":     {bot.SendMessageParams{ChatID: 7, Text: "<b>a", ParseMode: models.ParseModeHTML}, "Can't find end tag"},
		"entity":       {bot.SendMessageParams{ChatID: 7, Text: "a", Entities: []models.MessageEntity{{Type: "bold", Offset: 0, Length: 2}}}, "can't parse entities"},
		"unknown chat": {bot.SendMessageParams{ChatID: 8, Text: "a"}, "chat not found"},
	} {
		if err := send(c.p); !errors.Is(err, bot.ErrorBadRequest) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	fake.Block(7, true)
	if err := send(bot.SendMessageParams{ChatID: 7, Text: "a"}); !errors.Is(err, bot.ErrorForbidden) {
		t.Errorf("blocked: %v", err)
	}
	_ = send(bot.SendMessageParams{ChatID: -100, Text: "a"})
	err := send(bot.SendMessageParams{ChatID: -100, Text: "b"})
	if limit, ok := errors.AsType[*bot.TooManyRequestsError](err); !ok || limit.RetryAfter < 1 || limit.RetryAfter > 61 {
		t.Errorf("too fast: %v", err)
	}
	fake.Migrate(-100, -200)
	err = send(bot.SendMessageParams{ChatID: -100, Text: "c"})
	if m, ok := errors.AsType[*bot.MigrateError](err); !ok || m.MigrateToChatID != -200 {
		t.Errorf("migrated: %v", err)
	}
}

// Voice notes go in both directions. What isn't Ogg is refused.
func TestTelegramVoice(t *testing.T) {
	fake, b, updates := open(t, telegram.Options{})
	fake.SendFile(telegram.Private(7, "Ann"), telegram.File{Content: []byte("OggS1"), IsVoice: true}, "", "")
	u := next(t, updates)
	if u.Message == nil || u.Message.Voice == nil || u.Message.Voice.MimeType != "audio/ogg" {
		t.Fatalf("%+v", u.Message)
	}
	f, err := b.GetFile(t.Context(), &bot.GetFileParams{FileID: u.Message.Voice.FileID})
	if err != nil || f.FileSize != 5 {
		t.Errorf("%+v, %v", f, err)
	}
	for content, ok := range map[string]bool{"OggS2": true, "ID3": false} {
		sent, err := b.SendVoice(t.Context(), &bot.SendVoiceParams{ChatID: 7, Voice: &models.InputFileUpload{Filename: "a.ogg", Data: strings.NewReader(content)}})
		if (err == nil) != ok || ok && sent.ID == 0 {
			t.Errorf("%q: %+v, %v", content, sent, err)
		}
	}
	if m := fake.Visible(7); len(m) != 1 || !m[0].Files[0].IsVoice || string(m[0].Files[0].Content) != "OggS2" {
		t.Errorf("%+v", m)
	}
}
