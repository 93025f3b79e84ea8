package gateway

import (
	"time"

	"github.com/google/uuid"
)

// newID returns a UUIDv7. Ids of one process are in the order of time.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

// nowMillis returns the time in epoch milliseconds, as events have it.
func nowMillis() int64 { return time.Now().UnixMilli() }

// expiryAfter returns the time at which a key with that life expires, in epoch milliseconds.
func expiryAfter(life time.Duration) int64 { return nowMillis() + life.Milliseconds() }
