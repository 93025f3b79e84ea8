package feed

import "errors"

var (
	// ErrDeleted says that the conversation is gone. A reader need not come back.
	ErrDeleted = errors.New("feed: conversation deleted")
	// ErrLost says that the feed's owner gave it up, or that the log isn't the one that the feed was loaded from. The
	// cursor stays good: the reader acquires the feed anew.
	ErrLost = errors.New("feed: lost")
	// ErrClosed says that the registry is closed.
	ErrClosed = errors.New("feed: closed")
	// ErrOrder says that events were published that don't follow the head.
	ErrOrder = errors.New("feed: events out of order")
	// ErrNoMessage says that a page was asked for before a message that the conversation doesn't have, any more or ever.
	ErrNoMessage = errors.New("feed: no such message")
)
