package gateway

import (
	"log/slog"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/journal"
)

// Config is what a gateway is made of. Journal is needed; all else has a default.
type Config struct {
	Journal  journal.Journal
	Dialects dialect.Registry
	// Agents by name. DefaultAgent is used where a conversation and a command name none.
	Agents       map[string]Agent
	DefaultAgent string
	Log          *slog.Logger
	Metrics      *Metrics

	// Drain is how long running turns may go on after Shutdown began.
	Drain time.Duration
	// Lease is how long a pushed turn lives without its producer.
	Lease time.Duration
	// WaitLimit is how long a turn may stand still for a person.
	WaitLimit time.Duration
	// KeyLife is how long idempotency keys of commands other than send are kept.
	KeyLife time.Duration
	// MaxMessage bounds one message's text, in bytes; MaxQueued the turns that wait in one conversation.
	MaxMessage int
	MaxQueued  int
	// HistoryMessages bounds the messages that an agent gets as history.
	HistoryMessages int
}

// Agent is an agent under a name, with its limits.
type Agent struct {
	agent.Agent
	// Silence is how long the agent may say nothing while no tool of its own runs; 0 is DefaultSilence.
	Silence time.Duration
	// Kind says what it is, such as "demo" or "replay", for listings.
	Kind string
}

// The defaults, each from the design.
const (
	DefaultDrain     = 30 * time.Second
	DefaultLease     = 30 * time.Second
	DefaultSilence   = 120 * time.Second
	DefaultWaitLimit = 24 * time.Hour
	DefaultKeyLife   = 24 * time.Hour
	// DefaultMaxMessage fits the largest prompts that models take, as text.
	DefaultMaxMessage = 4 << 20
	DefaultMaxQueued  = 32
	DefaultHistory    = 50

	// returnLimit is how long the next turn waits for a stopped one's Run to return.
	returnLimit = 10 * time.Second
	// commitLimit is how long commits may fail before an owner drops its turns.
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
	def(&c.KeyLife, DefaultKeyLife)
	if c.MaxMessage == 0 {
		c.MaxMessage = DefaultMaxMessage
	}
	if c.MaxQueued == 0 {
		c.MaxQueued = DefaultMaxQueued
	}
	if c.HistoryMessages == 0 {
		c.HistoryMessages = DefaultHistory
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Metrics == nil {
		c.Metrics = NewMetrics()
	}
}
