package config_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leat-dev/leat/internal/app/config"
)

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30s": 30 * time.Second, "0": 0, "0s": 0, "1.5h": 90 * time.Minute, "30d": 720 * time.Hour, "0.5d": 12 * time.Hour, " 2m ": 2 * time.Minute,
		"": -1, "30": -1, "-1s": -1, "d": -1, "NaNd": -1, "1e9d": -1, "-1d": -1, "s": -1,
	} {
		var d config.Duration
		err := d.UnmarshalText([]byte(text))
		if (err != nil) != (want < 0) || err == nil && time.Duration(d) != want {
			t.Errorf("%q: %v, %v", text, d, err)
		}
	}
	for d, want := range map[time.Duration]string{
		0: "0s", time.Second: "1s", 90 * time.Second: "1m30s", 24 * time.Hour: "24h", 48 * time.Hour: "2d", 10 * time.Minute: "10m", 25 * time.Hour: "25h", 90 * time.Minute: "1h30m",
	} {
		if got := config.Duration(d).String(); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]int64{
		"512": 512, "64KiB": 64 << 10, "4 MiB": 4 << 20, "1GiB": 1 << 30, "7B": 7, "0": 0,
		"": -1, "-1": -1, "4MB": -1, "1.5MiB": -1, "9999999999GiB": -1, "KiB": -1,
	} {
		var z config.Size
		err := z.UnmarshalText([]byte(text))
		if (err != nil) != (want < 0) || err == nil && int64(z) != want {
			t.Errorf("%q: %v, %v", text, z, err)
		}
	}
}

// A value that is written and read again is the same.
func TestValuesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := config.Duration(rapid.Int64Range(0, int64(200*365*24*time.Hour)).Draw(t, "duration"))
		if rapid.Bool().Draw(t, "whole") {
			d -= d % config.Duration(time.Minute)
		}
		var d2 config.Duration
		if err := d2.UnmarshalText([]byte(d.String())); err != nil || d2 != d {
			t.Fatalf("%s: %v, %v", d, d2, err)
		}
		z := config.Size(rapid.Int64Range(0, 1<<62).Draw(t, "size"))
		if rapid.Bool().Draw(t, "round") {
			z &^= 1<<20 - 1
		}
		var z2 config.Size
		if err := z2.UnmarshalText([]byte(z.String())); err != nil || z2 != z {
			t.Fatalf("%s: %v, %v", z, z2, err)
		}
	})
}

// An error in a spec names what the spec configures.
func TestSpecErrors(t *testing.T) {
	var agents config.Agents
	if err := agents.Parse([]string{"=http"}); err == nil || !strings.HasPrefix(err.Error(), `agent "=http": `) {
		t.Error(err)
	}
	var channels config.Channels
	if err := channels.Parse([]string{"=telegram"}); err == nil || !strings.HasPrefix(err.Error(), `channel "=telegram": `) {
		t.Error(err)
	}
}
