package channeltest

import (
	"io"
	"testing"
	"time"

	"github.com/leat-dev/leat/internal/channel"
)

// Kind is a way in which a request fails. The kinds are those that every platform has. A platform's package translates them into its
// answers.
type Kind int

// The ways in which requests fail.
const (
	Works      Kind = iota
	Penalized       // refused, with a time before which no request is allowed
	Broken          // refused because of a fault of the server
	LostBefore      // not answered, without an effect
	LostAfter       // not answered, with an effect
)

// Fault is what happens to one request. The zero value is a request that works.
type Fault struct {
	Kind Kind
	Wait time.Duration // of a penalty, in whole seconds
}

// Platform is a platform under test. It is made once for all tests; what a test changes is in its Server.
type Platform struct {
	// New starts a fake server without faults.
	New func() Server
	// Chats are the ids of chats, of all kinds that the platform has. At least one.
	Chats []string
	// Idempotent means that every answer arrives exactly once, also if a request got no answer. It is a claim that the tests check:
	// they accept no unknown outcome then.
	Idempotent bool
	// Quiet means that nothing of a running turn is shown but its questions. The tests check that as well.
	Quiet bool
	// Tombstone is what a message becomes that should disappear, on a platform without deletion. If it is empty, messages are deleted.
	Tombstone string
}

// Server is a fake server of the platform. If it implements [io.Closer], it is closed at the end of a test, before its violations are
// read. Servers whose channels have connections need that.
type Server interface {
	// Open returns a new channel that uses the server, as a process does after a start. It shares no memory with the one before.
	Open() channel.StreamChannel
	// SetChaos sets a function that is asked for a fault for each request which concerns a chat. It replaces the one before. Requests
	// that concern no chat, such as polls, always work.
	SetChaos(next func() Fault)
	// Say makes a person write in a chat, and returns the id of the message. The id has the form of [channel.InboundMessage], so that
	// it can be answered.
	Say(chat string) string
	// Visible returns the visible texts of the bot's messages in a chat, the oldest first, without formatting. Drafts are left out.
	// Cursors and the texts of cards are a part of them.
	Visible(chat string) []string
	// Remove makes a person delete a message of the bot, the nth of Visible. The bot isn't informed, as on most platforms.
	Remove(chat string, n int)
	// Requests returns how many requests concerned chats.
	Requests() int
	// Violations returns what a good bot doesn't do: a request during a penalty, two requests for one message at a time.
	Violations() []string
}

// end closes a server and reports its violations.
func end(t *testing.T, s Server) {
	t.Helper()
	if c, ok := s.(io.Closer); ok {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, v := range s.Violations() {
		t.Error(v)
	}
}
