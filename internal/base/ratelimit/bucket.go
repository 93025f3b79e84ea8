package ratelimit

import "time"

// Rate is the size of a bucket and the time in which an empty one fills evenly: "30 a minute" is {30, time.Minute}. A rate of 0
// tokens is unlimited.
type Rate struct {
	Tokens int
	Per    time.Duration
}

// interval returns the time in which one token is added.
func (r Rate) interval() time.Duration { return r.Per / time.Duration(r.Tokens) }

// Bucket is a token bucket. It only stores the time at which it is full again (the generic cell rate algorithm). The zero value is
// full. It is not safe for concurrent use, because callers with many buckets have a lock already.
type Bucket struct{ full time.Time }

// Take takes a token. If the bucket is empty, it returns the wait until the next token.
func (b *Bucket) Take(at time.Time, r Rate) (wait time.Duration, ok bool) {
	if r.Tokens <= 0 {
		return 0, true
	}
	full := b.full
	if full.Before(at) {
		full = at
	}
	full = full.Add(r.interval())
	// interval is rounded down, so interval*Tokens may be below Per by less than a nanosecond a token. The limit must use the same
	// rounded unit.
	if wait := full.Sub(at) - r.interval()*time.Duration(r.Tokens); wait > 0 {
		return wait, false
	}
	b.full = full
	return 0, true
}

// Return gives back a token that was taken for something that didn't happen.
func (b *Bucket) Return(r Rate) {
	if r.Tokens > 0 {
		b.full = b.full.Add(-r.interval())
	}
}

// Full reports whether the bucket is full, and can be discarded.
func (b *Bucket) Full(at time.Time) bool { return !b.full.After(at) }
