package slack

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/base/ratelimit"
	"github.com/leat-dev/leat/internal/base/retry"
)

const (
	// The methods that have a limit or a special role here.
	methodOpen     = "apps.connections.open"
	methodPost     = "chat.postMessage"
	methodUpdate   = "chat.update"
	methodDelete   = "chat.delete"
	methodStart    = "chat.startStream"
	methodAppend   = "chat.appendStream"
	methodStop     = "chat.stopStream"
	methodStatus   = "assistant.threads.setStatus"
	methodComplete = "files.completeUploadExternal"

	// postGap is the time between two messages in a channel, and updateGap that between two edits. The documentation allows one
	// message a second in a channel, and edits belong to Tier 3, about 50 a minute.
	postGap   = 1050 * time.Millisecond
	updateGap = 1200 * time.Millisecond
	// maxLimits is how many limits are remembered before those that are over are forgotten. One of them belongs to a channel and a
	// method.
	maxLimits = 1000
)

// tier returns how fast a method may be called, in all channels together. Slack counts the requests of a minute, so the bucket and what
// flows into it in a minute are together a little less than what is known to pass. Half of the minute's requests may come at once.
func tier(perMinute int) ratelimit.Rate {
	return ratelimit.Rate{Tokens: perMinute / 2, Per: time.Minute}
}

// tiers are the limits of methods.
var tiers = map[string]ratelimit.Rate{
	methodStart: tier(20), methodStop: tier(20), methodAppend: tier(100), methodUpdate: tier(50), methodDelete: tier(50),
	"conversations.history": tier(50), "conversations.replies": tier(50),
}

// livePart returns the part of a tier that updates of running turns may use. The others are for answers, which would otherwise have to compete
// with the updates of all chats.
func livePart(r ratelimit.Rate) ratelimit.Rate {
	return ratelimit.Rate{Tokens: r.Tokens * 4 / 5, Per: r.Per}
}

// limits keep the requests of a bot within the limits of the platform. It is shared by all chats of the bot. Other programs with the
// same token are not known to it, so penalties still happen.
type limits struct {
	mu sync.Mutex
	// blocked has the ends of penalties by scope. No request is made before.
	blocked map[string]time.Time // ends of penalties
	// next has the next free time by method and channel. Each request that is let through moves it by its gap.
	next map[string]time.Time // of messages and of edits in a channel
	// buckets are those of the tiers, by method, and by method and "live" for updates of running turns.
	buckets map[string]*ratelimit.Bucket
}

// scope is what a penalty counts for: a method, and that of a message only in its channel. Slack names no scope in its answer. Its
// documentation limits messages for each channel and other methods for the workspace.
func scope(method, channel string) string {
	if method == methodPost {
		return method + " " + channel
	}
	return method
}

// enter waits for the gap of a channel, or returns a penalty if the method may not be called now. The gap is waited for here, so that the
// engine doesn't record it as a penalty. Penalties are returned to it, because meanwhile it can make requests that aren't limited.
func (l *limits) enter(ctx context.Context, method, channel string, isLive bool) error {
	wait, err := l.reserve(method, channel, isLive, time.Now())
	if err != nil {
		return err
	}
	if wait > 0 {
		return retry.Sleep(ctx, wait)
	}
	return ctx.Err()
}

// reserve takes the next place for a request and returns how long it has to wait for it. It doesn't wait itself, so that no lock is
// held during a wait.
func (l *limits) reserve(method, channel string, isLive bool, current time.Time) (time.Duration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if wait := l.blocked[scope(method, channel)].Sub(current); wait > 0 {
		return 0, &apiError{Method: method, Reason: reasonLimited, RetryAfter: wait}
	}
	if wait, ok := l.take(method, isLive, current); !ok {
		return 0, &apiError{Method: method, Reason: reasonLimited, RetryAfter: wait, IsOwn: true}
	}
	gap := time.Duration(0)
	switch method {
	case methodPost, methodStart, methodComplete:
		method, gap = methodPost, postGap
	case methodUpdate:
		gap = updateGap
	default:
		return 0, nil
	}
	key := method + " " + channel
	at := current
	if next := l.next[key]; next.After(current) {
		at = next
	}
	l.next = remember(l.next, key, at.Add(gap), current)
	return at.Sub(current), nil
}

// take takes a request from the tier of a method. It is called with the lock.
func (l *limits) take(method string, isLive bool, current time.Time) (wait time.Duration, ok bool) {
	rate, ok := tiers[method]
	if !ok {
		return 0, true
	}
	part := l.bucket(method + " live")
	if isLive {
		if wait, ok := part.Take(current, livePart(rate)); !ok {
			return wait, false
		}
	}
	if wait, ok := l.bucket(method).Take(current, rate); !ok {
		if isLive {
			part.Return(livePart(rate))
		}
		return wait, false
	}
	return 0, true
}

// bucket returns the bucket with a name, which it creates if necessary. It is called with the lock.
func (l *limits) bucket(name string) *ratelimit.Bucket {
	b := l.buckets[name]
	if b == nil {
		if l.buckets == nil {
			l.buckets = map[string]*ratelimit.Bucket{}
		}
		b = &ratelimit.Bucket{}
		l.buckets[name] = b
	}
	return b
}

// punish begins a penalty. It takes effect for requests that begin afterwards.
func (l *limits) punish(method, channel string, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := time.Now()
	l.blocked = remember(l.blocked, scope(method, channel), at.Add(wait), at)
}

// remember adds a time to a map, from which those that have passed are removed when it is large. The key is copied, because it may be
// a part of a larger text that would otherwise stay in memory.
func remember(m map[string]time.Time, key string, at, current time.Time) map[string]time.Time {
	if m == nil {
		m = map[string]time.Time{}
	}
	if len(m) >= maxLimits {
		for k, t := range m {
			if t.Before(current) {
				delete(m, k)
			}
		}
	}
	m[strings.Clone(key)] = at
	return m
}
