package eliza

import (
	"testing"
	"time"

	"github.com/leat-dev/leat/internal/base/retry"
)

// The waits are those of Eliza's clients, shortened by at most half.
func TestBackoff(t *testing.T) {
	for range 100 {
		b := retry.Backoff{Schedule: reconnect}
		want := 500 * time.Millisecond
		for i := range 20 {
			longest := min(want, 10*time.Second)
			if i >= 15 {
				longest = 30 * time.Second
			}
			if d := b.Next(); d <= longest/2 || d > longest {
				t.Fatalf("wait %d is %v, not above %v and up to %v", i+1, d, longest/2, longest)
			}
			want = want * 3 / 2
		}
		b.Reset()
		if d := b.Next(); d > 500*time.Millisecond {
			t.Fatalf("wait %v after a successful connection", d)
		}
	}
}
