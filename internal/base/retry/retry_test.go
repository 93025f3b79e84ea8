package retry_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/internal/base/retry"
)

func TestScheduleGrowsToItsLimitThenProbes(t *testing.T) {
	doubling := retry.Schedule{Initial: time.Second, Max: 5 * time.Second}
	slow := retry.Schedule{Initial: 100 * time.Millisecond, Max: 200 * time.Millisecond, Growth: 1.5, ProbeAfter: 3, Probe: time.Minute}
	for _, c := range []struct {
		name     string
		schedule retry.Schedule
		failures int
		want     time.Duration
	}{
		{"no failure counts as the first", doubling, 0, time.Second},
		{"first", doubling, 1, time.Second},
		{"second", doubling, 2, 2 * time.Second},
		{"third", doubling, 3, 4 * time.Second},
		{"limited", doubling, 4, 5 * time.Second},
		{"no overflow", doubling, math.MaxInt, 5 * time.Second},
		{"growth", slow, 2, 150 * time.Millisecond},
		{"last before the probes", slow, 3, 200 * time.Millisecond},
		{"probe", slow, 4, time.Minute},
	} {
		if got := c.schedule.Wait(c.failures); got != c.want {
			t.Errorf("%s: wait %v, want %v", c.name, got, c.want)
		}
	}
}

func TestJitterOnlySubtracts(t *testing.T) {
	schedule := retry.Schedule{Initial: time.Second, Max: time.Second, Jitter: true}
	shortest, longest := time.Hour, time.Duration(0)
	for range 1000 {
		wait := schedule.Wait(1)
		shortest, longest = min(shortest, wait), max(longest, wait)
	}
	if shortest <= time.Second/2 || longest > time.Second {
		t.Errorf("waits from %v to %v, want above 500ms and at most 1s", shortest, longest)
	}
	if shortest > 600*time.Millisecond || longest < 900*time.Millisecond {
		t.Errorf("waits from %v to %v: they don't spread", shortest, longest)
	}
	if wait := (retry.Schedule{Initial: 1, Max: 1, Jitter: true}).Wait(1); wait != 1 {
		t.Errorf("a wait too short to be halved is %v", wait)
	}
}

func TestBackoffStartsOverAfterReset(t *testing.T) {
	b := retry.Backoff{Schedule: retry.Schedule{Initial: time.Second, Max: time.Minute}}
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		if got := b.Next(); got != want {
			t.Fatalf("wait %v, want %v", got, want)
		}
	}
	b.Reset()
	if got := b.Next(); got != time.Second {
		t.Errorf("wait %v after a reset, want 1s", got)
	}
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		if err := retry.Sleep(t.Context(), time.Minute); err != nil || time.Since(begin) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		stopped := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(stopped) })
		begin = time.Now()
		if err := retry.Sleep(ctx, time.Minute); !errors.Is(err, stopped) || time.Since(begin) != time.Second {
			t.Errorf("%v after %v, want the cause after 1s", err, time.Since(begin))
		}
	})
}

func TestAfter(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"":                      0,
		"0":                     0,
		"7":                     7 * time.Second,
		" 7 ":                   7 * time.Second,
		"-7":                    0,
		"1.5":                   0,
		"soon":                  0,
		"999999999999999999999": 0,
		now.Add(90 * time.Second).Format(http.TimeFormat):  90 * time.Second,
		" " + now.Add(time.Minute).Format(http.TimeFormat): time.Minute,
		now.Add(-90 * time.Second).Format(http.TimeFormat): 0,
	} {
		if got := retry.After(header, now); got != want {
			t.Errorf("%q: %v, want %v", header, got, want)
		}
	}
}
