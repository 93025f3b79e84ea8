package journal

import (
	"errors"
	"fmt"
)

var (
	ErrNotFound = errors.New("journal: not found")
	ErrExists   = errors.New("journal: conversation exists")
	ErrDeleted  = errors.New("journal: conversation was deleted")
	// ErrFenced says that another writer has appended to the log. The caller must stop writing to the conversation.
	ErrFenced = errors.New("journal: fenced")
	// ErrFull says that the disk is full. Nothing was written, and the batch may be retried.
	ErrFull = errors.New("journal: disk full")
	// ErrUnknown says that a commit failed, but may have been stored.
	ErrUnknown = errors.New("journal: result of commit unknown")
	// ErrLocked says that another process uses the data folder.
	ErrLocked = errors.New("journal: data folder is in use")
	// ErrForeign says that the file isn't Leat's; ErrNewer that a newer version of Leat wrote it.
	ErrForeign = errors.New("journal: file is not a Leat journal")
	ErrNewer   = errors.New("journal: file was written by a newer version")
	ErrClosed  = errors.New("journal: closed")
	// ErrInvalid says that no log could accept the batch. It is a fault of the caller.
	ErrInvalid = errors.New("journal: invalid batch")
	// ErrOccupied says that the target folder of a restore already has a store.
	ErrOccupied = errors.New("journal: folder already has a store")
	// ErrCorrupt says that stored data was changed. It is never repaired silently.
	ErrCorrupt = errors.New("journal: corrupt")
)

// DamageError says that stored data of one conversation was changed. It wraps [ErrCorrupt].
type DamageError struct {
	Conversation string
	// Seq is the first event that can't be read, or 0 if the damage isn't in an event.
	Seq int64
	Err error
}

// Error names the conversation and, if known, the first event that can't be read.
func (e *DamageError) Error() string {
	if e.Seq > 0 {
		return fmt.Sprintf("conversation %s is damaged at seq %d: %v", e.Conversation, e.Seq, e.Err)
	}
	return fmt.Sprintf("conversation %s is damaged: %v", e.Conversation, e.Err)
}

// Unwrap makes each DamageError an [ErrCorrupt], whatever Err wraps.
func (e *DamageError) Unwrap() []error { return []error{ErrCorrupt, e.Err} }
