package gateway

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/internal/service/capture"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/service/usage"
)

// Config is what a gateway is made of. Journal is required; everything else has a default.
type Config struct {
	Journal  Journal
	Dialects dialect.Registry // the formats in which streams can be pushed
	// Agents knows the agents by name. If it is nil, there are none. DefaultAgent answers if neither the conversation nor the command
	// names an agent.
	Agents       Directory
	DefaultAgent string
	// Attachments stores the files that messages show. If it is nil, media are shown as they are, and agents can't store files.
	Attachments Attachments
	// Pusher runs turns whose stream a producer pushes. If it is nil, there are no such turns.
	Pusher Pusher
	// Raw captures the bytes that turns exchange with their agents, and retains them for a while. If it is nil, nothing is captured.
	Raw *capture.Log
	// Titles makes a title for conversations that nobody has named, from their first message.
	Titles bool

	Settings
	Quotas
	Hooks

	// UsageRetention is how long the costs of a turn are retained. If it is 0, it is usage.DefaultRetention.
	UsageRetention time.Duration
	// KeyLife is how long the idempotency keys of commands other than send are retained. Those of send live as long as their conversation.
	KeyLife time.Duration

	Log     *slog.Logger // if it is nil, nothing is logged
	Metrics *Metrics
	// LogContent logs the texts of messages at level debug. Without it, no log contains text of a conversation.
	LogContent bool
}

// Settings are the part of a [Config] that [Gateway.Adjust] can change while the gateway runs. A field that is 0 has its default. A change
// applies to what begins after it: a wait, a lease or a turn that has begun continues with the limit that it began with.
type Settings struct {
	// Drain is how long running turns may continue after Shutdown began.
	Drain time.Duration
	// Lease is how long a pushed turn lives without its producer.
	Lease time.Duration
	// WaitLimit is how long a turn may wait for a person.
	WaitLimit time.Duration
	// TurnLimit is how long a turn may run, without the time that it waits for a person. If it is negative, there is no limit.
	TurnLimit time.Duration
	// MaxMessage limits the text and data of one message, in bytes.
	MaxMessage int
	// MaxQueued limits the turns that wait in one conversation.
	MaxQueued int
	// HistoryMessages limits how many messages an agent gets as history, and HistoryBytes the bytes of their texts and data. The oldest
	// messages are left out.
	HistoryMessages, HistoryBytes int
	// Prices determine the costs of turns whose agents don't report costs.
	Prices usage.Prices
}

// Quotas limit what each user may use, and what the users of each tenant may use together. Admins that act for themselves have no limits.
type Quotas struct{ User, Tenant quota.Limits }

// Hooks connect other parts of the program to a gateway. All are optional.
type Hooks struct {
	// Outboxes store what events cause, such as webhooks to deliver, in the same commit as the events.
	Outboxes []Outbox
	// Watchers are notified of events after they are committed.
	Watchers []Watcher
	// Drained, if set, is called during Shutdown when all turns have ended or were detached, and commits are still possible. Shutdown waits
	// until it returns; ctx ends when that takes too long.
	Drained func(ctx context.Context)
	// Tracer traces turns.
	Tracer Tracer
	// Condition, if set, returns the health of an agent in one word, such as "up" or "down", and why it isn't up, for operators. Both are
	// empty if unknown. It must not block.
	Condition func(agent string) (state, reason string)
	// Admit refuses new turns of an agent with a *Rejection, for example while the agent is paused. If it is nil, all are admitted.
	Admit func(agent string) error
}

// The defaults, each from the design.
const (
	DefaultDrain     = 30 * time.Second
	DefaultLease     = 30 * time.Second
	DefaultSilence   = 120 * time.Second
	DefaultWaitLimit = 24 * time.Hour
	// DefaultTurnLimit is longer than any agent is known to work on one message. It ends turns that a broken upstream keeps alive.
	DefaultTurnLimit = 24 * time.Hour
	defaultKeyLife   = 24 * time.Hour
	// DefaultMaxMessage fits the largest prompts that models take, as text.
	DefaultMaxMessage = 4 << 20
	DefaultMaxQueued  = 32
	DefaultHistory    = 50
	// DefaultHistoryBytes is some 60,000 tokens: half of what most models take.
	DefaultHistoryBytes = 256 << 10

	// returnLimit is how long the next turn waits for a stopped one's Run to return.
	returnLimit = 10 * time.Second
	// commitLimit is how long commits may fail before a writer gives its conversation up.
	commitLimit = 30 * time.Second
	// maxWaiting bounds what may wait for a commit in one conversation, in bytes of text; emitters block above it.
	maxWaiting = 1 << 20
)

// setDefaults fills in what is not set, so that the gateway needs no check for nil. A gateway without agents answers nothing, but
// serves what is stored.
func (c *Config) setDefaults() {
	c.Settings.setDefaults()
	c.KeyLife = cmp.Or(c.KeyLife, defaultKeyLife)
	if c.Pusher == nil {
		c.Pusher = noPusher{}
	}
	if c.Attachments == nil {
		c.Attachments = noAttachments{}
	}
	if c.Agents == nil {
		c.Agents = Agents{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Metrics == nil {
		c.Metrics = NewMetrics()
	}
}

// setDefaults replaces zero fields by their defaults.
func (s *Settings) setDefaults() {
	s.Drain = cmp.Or(s.Drain, DefaultDrain)
	s.Lease = cmp.Or(s.Lease, DefaultLease)
	s.WaitLimit = cmp.Or(s.WaitLimit, DefaultWaitLimit)
	s.TurnLimit = cmp.Or(s.TurnLimit, DefaultTurnLimit)
	s.MaxMessage = cmp.Or(s.MaxMessage, DefaultMaxMessage)
	s.MaxQueued = cmp.Or(s.MaxQueued, DefaultMaxQueued)
	s.HistoryMessages = cmp.Or(s.HistoryMessages, DefaultHistory)
	s.HistoryBytes = cmp.Or(s.HistoryBytes, DefaultHistoryBytes)
}
