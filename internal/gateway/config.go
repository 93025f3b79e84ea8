package gateway

import (
	"log/slog"
	"time"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/internal/service/capture"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/service/usage"
)

// Config is what a gateway is made of. Journal is needed; all else has a default.
type Config struct {
	Journal  Journal
	Dialects dialect.Registry
	// Agents knows the agents by name; nil knows none. DefaultAgent is used where a conversation and a command name none.
	Agents       Directory
	DefaultAgent string
	Log          *slog.Logger
	Metrics      *Metrics
	// Outboxes store what events cause, such as webhooks to deliver, in the same commit.
	Outboxes []Outbox
	Tracer   Tracer // nil: none
	// Watchers are told of events once they are committed.
	Watchers []Watcher
	// Admit refuses new turns of an agent, by a Rejection, while it is not to answer; nil refuses none.
	Admit func(agent string) error
	// Titles gives conversations that nobody has named a title made of their first message.
	Titles bool
	// LogContent logs the texts of messages, at level debug.
	LogContent bool

	// User and Tenant bound what each user, and each tenant's users together, may use; the admin for itself is not bound.
	User, Tenant quota.Limits
	// Prices give turns a cost whose agents tell none. UsageRetention is how long what a turn cost is kept; 0 is
	// usage.DefaultRetention.
	Prices         usage.Prices
	UsageRetention time.Duration

	// Drain is how long running turns may go on after Shutdown began.
	Drain time.Duration
	// Lease is how long a pushed turn lives without its producer.
	Lease time.Duration
	// WaitLimit is how long a turn may stand still for a person.
	WaitLimit time.Duration
	// TurnLimit is how long a turn may run, without the time that it waits for a person; below 0 is no limit.
	TurnLimit time.Duration
	// KeyLife is how long idempotency keys of commands other than send are kept.
	KeyLife time.Duration
	// MaxMessage bounds one message's text, in bytes; MaxQueued the turns that wait in one conversation.
	MaxMessage int
	MaxQueued  int
	// HistoryMessages bounds the messages that an agent gets as history, HistoryBytes their texts and data; the oldest
	// are left out.
	HistoryMessages int
	HistoryBytes    int
	// Attachments stores the files that messages show. If it is nil, media stay as they come and agents can't store files.
	Attachments Attachments
	// Pusher runs turns whose stream a producer pushes. If it is nil, there are none.
	Pusher Pusher
	// Raw keeps the bytes that turns exchange with their agents, for a while; nil keeps none.
	Raw *capture.Log
}

// The defaults, each from the design.
const (
	DefaultDrain     = 30 * time.Second
	DefaultLease     = 30 * time.Second
	DefaultSilence   = 120 * time.Second
	DefaultWaitLimit = 24 * time.Hour
	// DefaultTurnLimit is longer than any agent is known to work on one message. It ends turns that a broken upstream keeps alive.
	DefaultTurnLimit = 24 * time.Hour
	DefaultKeyLife   = 24 * time.Hour
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

func (c *Config) setDefaults() {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&c.Drain, DefaultDrain)
	def(&c.Lease, DefaultLease)
	def(&c.WaitLimit, DefaultWaitLimit)
	def(&c.TurnLimit, DefaultTurnLimit)
	def(&c.KeyLife, DefaultKeyLife)
	if c.MaxMessage == 0 {
		c.MaxMessage = DefaultMaxMessage
	}
	if c.MaxQueued == 0 {
		c.MaxQueued = DefaultMaxQueued
	}
	if c.Pusher == nil {
		c.Pusher = noPusher{}
	}
	if c.Attachments == nil {
		c.Attachments = noAttachments{}
	}
	if c.HistoryMessages == 0 {
		c.HistoryMessages = DefaultHistory
	}
	if c.HistoryBytes == 0 {
		c.HistoryBytes = DefaultHistoryBytes
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
