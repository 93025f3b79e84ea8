package gateway

import (
	"time"

	"github.com/google/uuid"
)

// newID returns a UUIDv7.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

func nowMillis() int64 { return time.Now().UnixMilli() }

// expiryAfter returns when a key that lives that long expires, in epoch milliseconds.
func expiryAfter(life time.Duration) int64 { return nowMillis() + life.Milliseconds() }
