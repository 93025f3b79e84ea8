package feed

import "errors"

var (
	// ErrDeleted says that the conversation was deleted. Retrying is pointless.
	ErrDeleted = errors.New("feed: conversation deleted")
	// ErrLost says that the feed was given up by its writer, or that the log isn't the one that was loaded. The cursor stays valid:
	// the reader acquires the feed again.
	ErrLost = errors.New("feed: lost")
	// ErrClosed says that the registry is closed.
	ErrClosed = errors.New("feed: closed")
	// errOrder says that published events don't follow the head. It is a fault of the writer, so no caller distinguishes it.
	errOrder = errors.New("feed: events out of order")
	// ErrNoMessage says that a page was requested before a message that the conversation doesn't have.
	ErrNoMessage = errors.New("feed: no such message")
)
