//go:build linux

package soak

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/leat-dev/leat/test/binary"
)

// TestShort runs everything for some seconds. It compares no resources, because the processes don't live long enough to warm up.
func TestShort(t *testing.T) {
	report, err := runSoak(t.Context(), options{
		Binary: binary.Leat(t), Data: filepath.Join(t.TempDir(), "data"), Streams: 8, Pace: time.Millisecond, Seed: 1,
		Duration: 8 * time.Second, Storm: []time.Duration{2 * time.Second, 4 * time.Second}, Interval: time.Hour, Warm: time.Minute, Stretch: time.Second,
		Log: t.Logf,
	})
	if err != nil {
		t.Fatal(err)
	}
	if report.Turns == 0 || report.Restarts == 0 || len(report.Samples) == 0 {
		t.Errorf("%d turns, %d restarts, %d samples", report.Turns, report.Restarts, len(report.Samples))
	}
	t.Logf("%d turns", report.Turns)
}

// TestSoak runs for the duration in LEAT_SOAK; make soak sets it.
func TestSoak(t *testing.T) {
	if os.Getenv("LEAT_SOAK") == "" {
		t.Skip("SKIPPED: the duration is in LEAT_SOAK; run make soak HOURS=1, or set LEAT_SOAK=1h")
	}
	duration, err := time.ParseDuration(os.Getenv("LEAT_SOAK"))
	if err != nil {
		t.Fatalf("LEAT_SOAK: %v", err)
	}
	o := options{
		Binary: binary.Leat(t), Data: filepath.Join(t.TempDir(), "data"), Streams: 100, Pace: 100 * time.Millisecond, Seed: uint64(time.Now().UnixNano()),
		Duration: duration, Storm: []time.Duration{15 * time.Second, 35 * time.Second, 60 * time.Second, 90 * time.Second}, Interval: 29 * time.Minute,
		Warm: 10 * time.Minute, Stretch: 3 * time.Minute,
		Log: t.Logf,
	}
	if least := o.Storm[len(o.Storm)-1] + o.Warm + 2*o.Stretch; duration < least {
		t.Fatalf("LEAT_SOAK: %v is too short: a process is measured twice for %v after %v, so at least %v", duration, o.Stretch, o.Warm, least)
	}
	report, err := runSoak(t.Context(), o)
	if report != nil {
		t.Logf("%d turns, %d restarts", report.Turns, report.Restarts)
		for _, g := range report.growth {
			t.Log(g)
		}
		if len(report.growth) == 0 && err == nil {
			t.Error("no process ran long enough to be measured")
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}
