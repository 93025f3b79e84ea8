package quota

import (
	"fmt"
	"time"

	"github.com/leat-dev/leat/internal/base/ratelimit"
)

// Limits bound what one user, or all users of one tenant together, may use; 0 bounds nothing.
type Limits struct {
	Turns    int   // that are queued, run or wait at once
	Messages int   // a minute: so many at once, and then as many more evenly over each minute
	Bytes    int64 // in the store; a message that would lead above is refused
	Viewers  int   // streams and subscriptions that are open at once
}

func (l *Limits) rate() ratelimit.Rate { return ratelimit.Rate{Tokens: l.Messages, Per: time.Minute} }

// Who is a user. One without a subject is the operator.
type Account struct{ Tenant, Subject string }

func (w Account) operator() bool { return w.Subject == "" }

// Resource is what a limit is about.
type Resource string

// The resources.
const (
	Turns    Resource = "turns"
	Messages Resource = "messages"
	Bytes    Resource = "bytes"
	Viewers  Resource = "viewers"
)

// Scope says whose limit it is.
type scope string

// The scopes.
const (
	User   scope = "user"
	Tenant scope = "tenant"
)

// Exceeded is the error of what a limit refuses.
type Exceeded struct {
	Resource    Resource
	Scope       scope
	Limit       int64
	StoredBytes int64         // of bytes: how many are stored
	Wait        time.Duration // of messages: until the next is granted
}

func (e *Exceeded) Error() string {
	switch e.Resource {
	case Messages:
		return fmt.Sprintf("a %s may send %d messages a minute; the next in %v", e.Scope, e.Limit, max(e.Wait.Round(time.Second), time.Second))
	case Bytes:
		return fmt.Sprintf("a %s may store %d bytes, and %d are stored; delete conversations to go on", e.Scope, e.Limit, e.StoredBytes)
	case Turns:
		return fmt.Sprintf("a %s may have %d turns at once that wait or run", e.Scope, e.Limit)
	}
	return fmt.Sprintf("a %s may follow %d conversations at once", e.Scope, e.Limit)
}
