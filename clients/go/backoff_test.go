package leat

import (
	"errors"
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	var b backoff
	round := func() {
		want := float64(500 * time.Millisecond)
		for i := range 20 {
			at := time.Duration(min(want, float64(10*time.Second)))
			if i >= 15 {
				at = 30 * time.Second
			}
			if d := b.after(errors.New("cut")); d <= at/2 || d > at {
				t.Errorf("wait %d is %v, not above %v and up to %v", i+1, d, at/2, at)
			}
			want *= 1.5
		}
	}
	round()
	b.reset()
	round()
	b.reset()
	if d := b.after(&Error{RetryAfter: 4 * time.Second}); d < 4*time.Second || d > 6*time.Second {
		t.Errorf("%v, though the gateway asks for 4 s", d)
	}
}
