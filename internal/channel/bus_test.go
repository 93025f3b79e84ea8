package channel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/leat-dev/leat/internal/channel"
)

// in returns a message in a chat.
func in(chat string, n int) channel.InboundMessage {
	return channel.InboundMessage{Channel: "x", ChatID: chat, Content: fmt.Sprint(n)}
}

// A full chat blocks only those who publish to it, in order, until there is space.
func TestBusBlocksOneChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, handled := make(chan struct{}), make(chan string, 100)
		bus := channel.NewMessageBus(func(_ context.Context, m channel.InboundMessage) {
			if m.ChatID == "slow" {
				<-release
			}
			handled <- m.ChatID + m.Content
		}, func(context.Context, channel.OutboundMessage) {})
		n := 0
		for bus.TryPublishInbound(in("slow", n)) == nil {
			n++
			synctest.Wait()
		}
		published := make(chan error, 1)
		go func() { published <- bus.PublishInbound(t.Context(), in("slow", n)) }()
		synctest.Wait()
		if len(published) != 0 {
			t.Error("publishing to a full chat did not block")
		}
		if err := bus.PublishInbound(t.Context(), in("fast", 0)); err != nil {
			t.Error(err)
		}
		if got := <-handled; got != "fast0" {
			t.Error(got)
		}
		close(release)
		for i := range n + 1 {
			if got, want := <-handled, fmt.Sprint("slow", i); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		if err := <-published; err != nil {
			t.Error(err)
		}
		bus.Close(t.Context())
	})
}

// A publisher that waits is released when its context ends, and when the bus is closed.
func TestBusReleasesPublishers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := channel.NewMessageBus(func(context.Context, channel.InboundMessage) {}, func(ctx context.Context, _ channel.OutboundMessage) { <-ctx.Done() })
		out := channel.OutboundMessage{Channel: "x", ChatID: "c"}
		ctx, cancel := context.WithCancel(t.Context())
		results := make(chan error, 100)
		for range 20 {
			go func() { results <- bus.PublishOutbound(ctx, out) }()
		}
		synctest.Wait()
		accepted := len(results)
		cancel()
		synctest.Wait()
		refused := 0
		for range len(results) {
			if errors.Is(<-results, context.Canceled) {
				refused++
			}
		}
		if accepted == 0 || accepted+refused != 20 {
			t.Errorf("%d accepted, %d refused", accepted, refused)
		}
		go func() { results <- bus.PublishOutbound(t.Context(), out) }()
		synctest.Wait()
		ended, end := context.WithCancel(t.Context())
		end()
		bus.Close(ended)
		if err := <-results; !errors.Is(err, channel.ErrBusClosed) {
			t.Errorf("a publisher of a closed bus: %v", err)
		}
		if err := bus.PublishInbound(t.Context(), in("c", 0)); !errors.Is(err, channel.ErrBusClosed) {
			t.Errorf("after close: %v", err)
		}
	})
}
