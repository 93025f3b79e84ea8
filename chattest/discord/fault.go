package discord

import (
	"cmp"
	"net/http"
	"time"
)

// Scopes of a 429: one bucket of the bot, all requests of the bot, and all bots in one channel.
const (
	ScopeUser   = "user"
	ScopeGlobal = "global"
	ScopeShared = "shared"
)

// codeChannelLimit is the code of a 429 for writing to a channel. It ends all writing there. It is shared by all bots in the channel,
// so it isn't the fault of the bot under test.
const codeChannelLimit = 20028

// Fault is something that goes wrong with one request: the first that matches.
type Fault struct {
	// Route is the method and the path with placeholders, such as [CreateMessage]. If it is empty, every request matches.
	Route string
	Skip  int // how many matching requests pass before
	// Before closes the connection before the request takes effect, and After when it has. Both leave it unanswered.
	Before, After bool
	// Status answers with this status, Code and Message, without an effect.
	Status  int
	Code    int
	Message string
	// RetryAfter is the penalty of a 429, and Scope says for what. If Scope is empty, it is [ScopeUser].
	RetryAfter time.Duration
	Scope      string
	// Release, if set, delays the request until it is closed.
	Release <-chan struct{}
}

// Fail adds a fault.
func (s *Server) Fail(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &f)
}

// punish returns the answer of a fault and begins its penalty. mu must be locked.
func (s *Server) punish(c *call, f *Fault) *refusal {
	if f.Status != http.StatusTooManyRequests {
		return refuse(f.Status, f.Code, "%s", cmp.Or(f.Message, http.StatusText(f.Status)))
	}
	scope := cmp.Or(f.Scope, ScopeUser)
	end := time.Now().Add(f.RetryAfter)
	switch {
	case scope == ScopeGlobal:
		s.global.penalty = end
	case f.Code == codeChannelLimit && c.channel != nil:
		c.channel.penalty = end
	default:
		s.bucket(c).penalty = end
	}
	failed := c.tooMany(f.RetryAfter, scope)
	failed.code = f.Code
	return failed
}
