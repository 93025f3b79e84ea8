package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is a duration, written as 30s, 2m30s, 24h or 30d. It is never negative. A day has 24 hours; the unit d
// can't be combined with others.
type Duration time.Duration

// day is a unit of durations that package time doesn't parse.
const day = 24 * time.Hour

// UnmarshalText implements [encoding.TextUnmarshaler]. It accepts what time.ParseDuration does, and a number of days
// such as 30d or 1.5d.
func (d *Duration) UnmarshalText(b []byte) error {
	s := strings.TrimSpace(string(b))
	v, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); err != nil && ok {
		var n float64
		n, err = strconv.ParseFloat(days, 64)
		v = time.Duration(n * float64(day))
		// The condition is negated so that it also refuses NaN. If n is out of range, the value of v is unspecified.
		if err == nil && !(math.Abs(n) <= float64(math.MaxInt64/day)) {
			err = strconv.ErrRange
		}
	}
	if err != nil || v < 0 {
		return fmt.Errorf("invalid duration %q; use 30s, 10m, 24h or 30d", s)
	}
	*d = Duration(v)
	return nil
}

// MarshalText implements [encoding.TextMarshaler].
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// String returns the shortest usual form: whole days from 2d on, and hours and minutes without zeros behind them.
func (d Duration) String() string {
	switch v := time.Duration(d); {
	case v%day == 0 && v > day:
		return strconv.FormatInt(int64(v/day), 10) + "d"
	case v == 0 || v%time.Minute != 0:
		return v.String()
	case v%time.Hour != 0:
		return strings.TrimSuffix(v.String(), "0s") // 2m0s becomes 2m
	default:
		return strings.TrimSuffix(v.String(), "0m0s") // 24h0m0s becomes 24h
	}
}

// Size is a number of bytes, written as 512, 64KiB or 4MiB. It is never negative. Units are powers of 1024; KB and MB
// are errors, because they are ambiguous.
type Size int64

// units are the units of sizes, the largest first, so that MiB is not taken for a number that ends in B.
var units = []struct {
	name string
	size int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// UnmarshalText implements [encoding.TextUnmarshaler]. It accepts whole numbers with one of the units, or without one
// for bytes.
func (z *Size) UnmarshalText(b []byte) error {
	s := strings.TrimSpace(string(b))
	number, unit := s, int64(1)
	for _, u := range units {
		if n, ok := strings.CutSuffix(s, u.name); ok {
			number, unit = strings.TrimSpace(n), u.size
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return fmt.Errorf("invalid size %q; use 512, 64KiB, 4MiB or 1GiB", s)
	}
	*z = Size(n * unit)
	return nil
}

// MarshalText implements [encoding.TextMarshaler].
func (z Size) MarshalText() ([]byte, error) { return []byte(z.String()), nil }

// String returns the size in the largest unit that divides it, so that it is read as the same number.
func (z Size) String() string {
	for _, u := range units[:3] {
		if z != 0 && int64(z)%u.size == 0 {
			return strconv.FormatInt(int64(z)/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(z), 10)
}
