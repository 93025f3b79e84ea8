package quota

import (
	"fmt"
	"time"

	"github.com/leat-dev/leat/internal/base/ratelimit"
)

// Limits are the limits of one user, or of all users of one tenant together. 0 means no limit.
type Limits struct {
	Turns    int   // number of turns that are queued, running or waiting
	Messages int   // per minute, as a token bucket of this size
	Bytes    int64 // stored bytes; a message that would exceed them is refused
	Viewers  int   // number of open streams and subscriptions
}

// rate returns the message limit as a token bucket.
func (l *Limits) rate() ratelimit.Rate { return ratelimit.Rate{Tokens: l.Messages, Per: time.Minute} }

// Account identifies a user. An account without a subject is the operator.
type Account struct{ Tenant, Subject string }

func (w Account) operator() bool { return w.Subject == "" }

// Resource is the kind of usage that a limit applies to.
type Resource string

// The resources. Clients receive these values in errors.
const (
	Turns    Resource = "turns"
	Messages Resource = "messages"
	Bytes    Resource = "bytes"
	Viewers  Resource = "viewers"
)

// scope is the level of a limit.
type scope string

// The scopes. Clients receive these values in errors.
const (
	User   scope = "user"
	Tenant scope = "tenant"
)

// Exceeded is the error for a request that a limit refuses.
type Exceeded struct {
	Resource    Resource
	Scope       scope
	Limit       int64
	StoredBytes int64         // only for Bytes: the bytes stored now
	Wait        time.Duration // only for Messages: the time until the next one is allowed
}

// Error returns a sentence that is shown to users, with the limit and what they can do.
func (e *Exceeded) Error() string {
	switch e.Resource {
	case Messages:
		return fmt.Sprintf("a %s may send %d messages per minute; try again in %v", e.Scope, e.Limit, max(e.Wait.Round(time.Second), time.Second))
	case Bytes:
		return fmt.Sprintf("a %s may store %d bytes and already stores %d; delete conversations to free space", e.Scope, e.Limit, e.StoredBytes)
	case Turns:
		return fmt.Sprintf("a %s may have %d turns waiting or running at a time", e.Scope, e.Limit)
	}
	return fmt.Sprintf("a %s may follow %d conversations at a time", e.Scope, e.Limit)
}
