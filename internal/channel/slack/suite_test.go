package slack

import (
	"testing"
	"time"

	fake "github.com/leat-dev/leat/chattest/slack"
	"github.com/leat-dev/leat/internal/channel/channeltest"
)

// What holds for every platform holds for direct messages, which are edited, and for threads, which have streams.
func TestSuite(t *testing.T) {
	channeltest.Run(t, channeltest.Platform{
		New:        func() channeltest.Server { return newBench(fake.Options{Gap: time.Second, Tiers: true}) },
		Chats:      []string{"D7", "D8/" + began, "C1/" + began, "C2/" + began, "D9"},
		Idempotent: true,
	})
}

// The same holds where streams are refused.
func TestSuiteWithoutStreams(t *testing.T) {
	channeltest.Run(t, channeltest.Platform{
		New: func() channeltest.Server {
			return newBench(fake.Options{Gap: time.Second, Tiers: true, NoStreams: true})
		},
		Chats:      []string{"C1/" + began},
		Idempotent: true,
	})
}
