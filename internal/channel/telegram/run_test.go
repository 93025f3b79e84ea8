package telegram

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	fake "github.com/leat-dev/leat/chattest/telegram"
	"github.com/leat-dev/leat/internal/channel"
)

// inbox collects what a bot receives.
type inbox chan channel.InboundMessage

func (b inbox) Receive(_ context.Context, m channel.InboundMessage) error {
	b <- m
	return nil
}

// Messages, replies, commands, buttons and the stop button of a draft become messages of the pipeline.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{Username: "Leat_bot"})
		received := make(inbox, 10)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx, received) }()
		synctest.Wait()
		if got := c.Link(); got != "https://t.me/Leat_bot" {
			t.Errorf("link %q", got)
		}
		if menu := server.Menu(); len(menu) != len(channel.Commands()) || menu[0].Command != "new" {
			t.Errorf("menu %v", menu)
		}
		topic := fake.Group(-100, 7, "Ann")
		topic.Thread = 5
		for _, step := range []struct {
			what string
			do   func()
			want channel.InboundMessage
		}{
			{"private", func() { server.Say(ann, "hello") }, channel.InboundMessage{ID: "7/1", ChatID: "7", Content: "hello"}},
			{"command", func() { server.Say(ann, "/agent b") }, channel.InboundMessage{
				ID: "7/2", ChatID: "7", Content: "/agent b", Hints: channel.RoutingHints{ForceSync: true, Command: "agent", Args: "b"},
			}},
			{"group", func() { server.Say(topic, "nothing for the bot") }, channel.InboundMessage{
				ID: "-100/1", ChatID: "-100/5", Content: "nothing for the bot", Hints: channel.RoutingHints{Group: true},
			}},
			{"mention", func() { server.Say(topic, "hi @leat_bot2 and @LEAT_bot, help") }, channel.InboundMessage{
				ID: "-100/2", ChatID: "-100/5", Content: "hi @leat_bot2 and , help", Hints: channel.RoutingHints{Group: true, Addressed: true},
			}},
			{"stop button", func() { server.Stop(7, 3) }, channel.InboundMessage{
				ID: "stop/1004", ChatID: "7", Content: "/stop", Hints: channel.RoutingHints{ForceSync: true, Command: "stop"},
			}},
		} {
			step.do()
			synctest.Wait()
			select {
			case m := <-received:
				m.Timestamp = time.Time{}
				if step.want.SenderID = "7"; step.what != "stop button" {
					step.want.SenderName = "Ann"
				}
				if got, want := m, step.want; got.ID != want.ID || got.ChatID != want.ChatID || got.Content != want.Content || got.Hints != want.Hints ||
					got.SenderID != want.SenderID || got.SenderName != want.SenderName {
					t.Errorf("%s:\n%+v, want\n%+v", step.what, got, want)
				}
			default:
				t.Errorf("%s: no message", step.what)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A token that Telegram refuses ends Run, so that the channel is shown as not working.
func TestRunRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newBot(fake.Options{})
		c.client.token = "2:wrong"
		if err := c.Run(t.Context(), make(inbox)); code(err) != 401 {
			t.Error(err)
		}
	})
}
