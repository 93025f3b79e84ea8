package ratelimit_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leat-dev/leat/internal/base/ratelimit"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestBucket(t *testing.T) {
	var b ratelimit.Bucket
	r := ratelimit.Rate{Tokens: 3, Per: time.Minute}
	wantTake := func(at, wait time.Duration) {
		t.Helper()
		got, ok := b.Take(start.Add(at), r)
		if got != wait || ok != (wait == 0) {
			t.Fatalf("at %v: wait %v, ok %v; want %v", at, got, ok, wait)
		}
	}
	wantTake(0, 0)
	wantTake(0, 0)
	wantTake(0, 0)
	wantTake(0, 20*time.Second)
	wantTake(5*time.Second, 15*time.Second)
	wantTake(20*time.Second, 0)
	wantTake(20*time.Second, 20*time.Second)
	b.Return(r)
	wantTake(20*time.Second, 0)
	if b.Full(start.Add(79 * time.Second)) {
		t.Error("the bucket is full too early")
	}
	if !b.Full(start.Add(80 * time.Second)) {
		t.Error("the bucket is not full after a minute")
	}
	// An unused bucket never exceeds its size.
	for range 3 {
		wantTake(time.Hour, 0)
	}
	wantTake(time.Hour, 20*time.Second)
	wantTake(time.Hour-time.Minute, 80*time.Second) // setting the clock back adds no tokens
}

func TestNoRate(t *testing.T) {
	var b ratelimit.Bucket
	for range 1000 {
		if _, ok := b.Take(start, ratelimit.Rate{}); !ok {
			t.Fatal("a rate of zero must not limit")
		}
	}
	if b.Return(ratelimit.Rate{}); !b.Full(start) {
		t.Error("the bucket is not full")
	}
}

// In any period, at most the size of the bucket plus the tokens added in that period are taken. After the returned wait, and not
// before, a token is available.
func TestBucketRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := ratelimit.Rate{Tokens: rapid.IntRange(1, 70).Draw(t, "tokens"), Per: time.Duration(rapid.IntRange(1, 120).Draw(t, "seconds")) * time.Second}
		var b ratelimit.Bucket
		now := start
		var taken []time.Time
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, int(r.Per)/r.Tokens*2).Draw(t, "pause")))
			wait, ok := b.Take(now, r)
			if !ok {
				if _, early := b.Take(now.Add(wait-1), r); early {
					t.Fatalf("a token is available one nanosecond before the wait of %v", wait)
				}
				now = now.Add(wait)
				if _, ok = b.Take(now, r); !ok {
					t.Fatalf("no token after the wait of %v", wait)
				}
			}
			taken = append(taken, now)
		}
		every := r.Per / time.Duration(r.Tokens)
		for i := range taken {
			for k := i; k < len(taken); k++ {
				if most := r.Tokens + int(taken[k].Sub(taken[i])/every); k-i+1 > most {
					t.Fatalf("%d were taken in %v, at most %d may be", k-i+1, taken[k].Sub(taken[i]), most)
				}
			}
		}
	})
}
