package gateway

import (
	"time"

	"github.com/leat-dev/leat/internal/service/usage"
)

// Settings are what of a [Config] may change while the gateway runs; 0 is the default there as well. What has begun goes on
// with what it began with.
type Settings struct {
	Drain, Lease, WaitLimit, TurnLimit time.Duration
	MaxMessage, MaxQueued              int
	HistoryMessages, HistoryBytes      int
	Prices                             usage.Prices
}

// settings of a Config in which the defaults are filled in.
func (c *Config) settings() *Settings {
	return &Settings{
		Drain: c.Drain, Lease: c.Lease, WaitLimit: c.WaitLimit, TurnLimit: c.TurnLimit, MaxMessage: c.MaxMessage, MaxQueued: c.MaxQueued,
		HistoryMessages: c.HistoryMessages, HistoryBytes: c.HistoryBytes, Prices: c.Prices,
	}
}
