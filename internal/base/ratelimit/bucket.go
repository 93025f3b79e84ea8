package ratelimit

import "time"

// Rate is how many tokens a full bucket holds, and in what time an empty one fills, evenly: "30 a minute" is
// {30, time.Minute}. A rate of no tokens bounds nothing.
type Rate struct {
	Tokens int
	Per    time.Duration
}

// every is the time in which one token comes.
func (r Rate) every() time.Duration { return r.Per / time.Duration(r.Tokens) }

// Bucket is a token bucket, kept as the one moment at which it is full again (the generic cell rate algorithm). The zero
// value is full. It is not safe for concurrent use; whoever holds many of them has a lock already.
type Bucket struct{ full time.Time }

// Take takes a token. Where there is none it takes nothing and returns how long it is until there is one.
func (b *Bucket) Take(now time.Time, r Rate) (wait time.Duration, ok bool) {
	if r.Tokens <= 0 {
		return 0, true
	}
	full := b.full
	if full.Before(now) {
		full = now
	}
	full = full.Add(r.every())
	// Rounding down may leave every*Tokens below Per by less than a nanosecond a token; the bound is made of the same unit.
	if wait := full.Sub(now) - r.every()*time.Duration(r.Tokens); wait > 0 {
		return wait, false
	}
	b.full = full
	return 0, true
}

// Return gives a token back that was taken for something that did not come about.
func (b *Bucket) Return(r Rate) {
	if r.Tokens > 0 {
		b.full = b.full.Add(-r.every())
	}
}

// Full reports whether nothing is missing: such a bucket is as good as a new one and can be forgotten.
func (b *Bucket) Full(now time.Time) bool { return !b.full.After(now) }
