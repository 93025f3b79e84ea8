package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// A token contains its number within its stream and the time when it was sent, in nanoseconds since the program's start:
// "^000123.000000123456789 ". So a viewer detects lost, duplicated and reordered tokens, and measures latency, without other information.
const (
	mark     = '^' // doesn't occur in cursors, ids or JSON of the gateway
	tokenLen = 1 + 6 + 1 + 15 + 1
)

// began is the origin of all token times. It is monotonic, so changes of the system's clock don't affect latencies.
var began = time.Now()

func appendToken(b []byte, i int, at time.Duration) []byte {
	b = append(b, mark)
	b = appendDigits(b, int64(i), 6)
	b = append(b, '.')
	b = appendDigits(b, int64(at), 15)
	return append(b, ' ')
}

// appendDigits appends v with leading zeros. It doesn't allocate, because every token is built during the measurement.
func appendDigits(b []byte, v int64, width int) []byte {
	at := len(b)
	for range width {
		b = append(b, '0')
	}
	for i := at + width - 1; v > 0 && i >= at; i-- {
		b[i] = byte('0' + v%10)
		v /= 10
	}
	return b
}

// parseToken returns the number and the time of a token.
func parseToken(t []byte) (number int, at time.Duration, err error) {
	n, err1 := strconv.ParseUint(string(t[1:7]), 10, 32)
	ns, err2 := strconv.ParseUint(string(t[8:23]), 10, 62)
	if err := errors.Join(err1, err2); err != nil {
		return 0, 0, fmt.Errorf("token %q: %w", t, err)
	}
	return int(n), time.Duration(ns), nil
}
