package serve

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/gateway/host"
	"github.com/leat-dev/leat/internal/service/webhook"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// Webhooks get the same notice of a failed delivery from built-in channels and from plugins.
func TestNotices(t *testing.T) {
	blocked := errors.New("the bot was blocked")
	lost := fmt.Errorf("sent: %w", channel.ErrUnknownOutcome)
	for code, pair := range map[string][2]webhook.Failure{
		"undeliverable": {
			notice(channel.StreamFailed{Channel: "c", Chat: "7", Turn: "T", Conversation: "C", Tenant: "t", Subject: "s", Seq: 3, Err: blocked}),
			pluginNotice(host.Failure{Channel: "c", Chat: "7", Turn: "T", Conversation: "C", Tenant: "t", Subject: "s", Seq: 3, Err: blocked}),
		},
		"possibly_delivered": {
			notice(channel.StreamFailed{Channel: "c", Chat: "7", Conversation: "C", Err: lost}),
			pluginNotice(host.Failure{Channel: "c", Chat: "7", Conversation: "C", Err: lost, IsUnknown: true}),
		},
	} {
		if pair[0] != pair[1] || pair[0].Error.Code != code || pair[0].Chat != "7" || pair[0].Error.Message == "" {
			t.Errorf("%s: %+v, %+v", code, pair[0], pair[1])
		}
	}
}

// Without plugins the signals are those of the built-in channels.
func TestChannelSignals(t *testing.T) {
	j := memory.New()
	defer func() { _ = j.Close() }()
	a := &App{channels: channel.New(channel.Config{Journal: j, Log: slog.New(slog.DiscardHandler)})}
	if list := a.channelSignals(); len(list) > 0 {
		t.Errorf("%q", list)
	}
}
