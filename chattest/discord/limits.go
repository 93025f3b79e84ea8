package discord

import (
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// limit is how many requests are allowed in a window, which begins with its first request.
type limit struct {
	count  int
	window time.Duration
}

// limits are the limits of routes for each channel. The platform doesn't publish them; these are the common ones. A bot that follows
// the headers passes with any numbers, and one with fixed gaps only with these.
var limits = map[string]limit{
	CreateMessage: {5, 5 * time.Second},
	EditMessage:   {5, 5 * time.Second},
	DeleteMessage: {5, time.Second},
	Typing:        {5, 5 * time.Second},
	GetCommands:   {5, 5 * time.Second},
	PutCommands:   {2, time.Minute},
}

// globalLimit is the limit of all requests of a bot. Those of interactions don't count.
var globalLimit = limit{50, time.Second}

// bucket counts the requests that share a limit.
type bucket struct {
	// count is how many requests the window has had.
	count   int
	reset   time.Time // end of the window
	penalty time.Time // end of the last 429
	isTold  bool      // a header said that no request is left
}

// bucketName returns the opaque name of a route's bucket.
func bucketName(route string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(route))
	return fmt.Sprintf("%016x", h.Sum64())
}

// bucket returns the bucket of a request. mu must be locked.
func (s *Server) bucket(c *call) *bucket {
	key := c.route + "/" + c.value("channel") + c.value("token")
	b := s.buckets[key]
	if b == nil {
		b = &bucket{}
		s.buckets[key] = b
	}
	return b
}

// isWriting reports whether a request counts against the limit of writing to a channel.
func (c *call) isWriting() bool { return c.route == CreateMessage || c.route == EditMessage }

// blocked returns the end of the penalty that is in force for a request, and its scope. mu must be locked.
func (s *Server) blocked(c *call) (time.Time, string) {
	isInteraction := strings.Contains(c.route, "{token}")
	switch at := time.Now(); {
	case at.Before(s.global.penalty) && !isInteraction:
		return s.global.penalty, ScopeGlobal
	case c.channel != nil && c.isWriting() && at.Before(c.channel.penalty):
		return c.channel.penalty, ScopeShared
	case at.Before(s.bucket(c).penalty):
		return s.bucket(c).penalty, ScopeUser
	}
	return time.Time{}, ""
}

// checkPenalty records a request during a penalty. mu must be locked.
func (s *Server) checkPenalty(c *call) {
	if end, scope := s.blocked(c); scope != "" {
		s.violate("%s for %s, %v before the end of the %s penalty", c.route, c.value("channel"), end.Sub(c.at), scope)
	}
}

// limit counts a request and refuses it if it is beyond a limit. mu must be locked.
func (s *Server) limit(c *call) *refusal {
	if end, scope := s.blocked(c); scope != "" {
		return c.tooMany(wholeWait(time.Until(end)), scope)
	}
	if s.opt.NoLimits {
		return nil
	}
	at := time.Now()
	if !strings.Contains(c.route, "{token}") && !s.global.take(globalLimit, at) {
		s.global.penalty = s.global.reset
		return c.tooMany(wholeWait(s.global.reset.Sub(at)), ScopeGlobal)
	}
	l, ok := limits[c.route]
	if !ok {
		return nil
	}
	b := s.bucket(c)
	isAllowed := b.take(l, at)
	remaining := max(0, l.count-b.count)
	c.limits.Set("X-Ratelimit-Limit", strconv.Itoa(l.count))
	c.limits.Set("X-Ratelimit-Remaining", strconv.Itoa(remaining))
	c.limits.Set("X-Ratelimit-Reset", fmt.Sprintf("%.3f", float64(b.reset.UnixMilli())/1000))
	c.limits.Set("X-Ratelimit-Reset-After", fmt.Sprintf("%.3f", wholeWait(b.reset.Sub(at)).Seconds()))
	c.limits.Set("X-Ratelimit-Bucket", bucketName(c.route))
	// The first refusal of a bucket can't be foreseen, because only an answer tells its size. Later ones could have been avoided.
	if !isAllowed {
		if b.isTold {
			s.violate("%s for %s, although no request was left in its bucket", c.route, c.value("channel"))
		}
		b.penalty = b.reset
		return c.tooMany(wholeWait(b.reset.Sub(at)), ScopeUser)
	}
	b.isTold = remaining == 0
	return nil
}

// take counts a request. It returns false if the window has none left.
func (b *bucket) take(l limit, at time.Time) bool {
	if !at.Before(b.reset) {
		b.count, b.reset, b.isTold = 0, at.Add(l.window), false
	}
	if b.count >= l.count {
		return false
	}
	b.count++
	return true
}

// wholeWait returns a wait in whole milliseconds, as headers and answers give it: rounded up, and one more, because a client that reads
// it as a float and cuts off what is below a millisecond (discordgo 0.29 does) would come back too early.
func wholeWait(wait time.Duration) time.Duration {
	return (wait + 2*time.Millisecond - 1).Truncate(time.Millisecond)
}

// tooMany returns the answer to a request beyond a limit.
func (c *call) tooMany(wait time.Duration, scope string) *refusal {
	c.limits.Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	c.limits.Set("X-Ratelimit-Scope", scope)
	if scope == ScopeGlobal {
		c.limits.Set("X-Ratelimit-Global", "true")
	} else {
		c.limits.Set("X-Ratelimit-Bucket", bucketName(c.route))
		c.limits.Set("X-Ratelimit-Remaining", "0")
		c.limits.Set("X-Ratelimit-Reset-After", fmt.Sprintf("%.3f", wait.Seconds()))
	}
	message := "You are being rate limited."
	if scope == ScopeShared {
		message = "The resource is being rate limited."
	}
	failed := refuse(http.StatusTooManyRequests, 0, "%s", message)
	failed.retryAfter, failed.scope = wait, scope
	if scope == ScopeShared {
		failed.code = codeChannelLimit
	}
	return failed
}
