package journal

import (
	"errors"
	"fmt"
)

var (
	ErrNotFound = errors.New("journal: not found")
	ErrExists   = errors.New("journal: conversation exists")
	ErrDeleted  = errors.New("journal: conversation was deleted")
	// ErrFenced says that another writer has moved the log on; the caller gives the conversation up.
	ErrFenced = errors.New("journal: fenced")
	// ErrFull says that the disk is full. Nothing was written; the same batch may be tried again.
	ErrFull = errors.New("journal: disk full")
	// ErrUnknown says that a commit failed in a way that leaves open whether it is there.
	ErrUnknown = errors.New("journal: fate of commit unknown")
	// ErrLocked says that another process has the data folder.
	ErrLocked = errors.New("journal: data folder is in use")
	// ErrForeign says that a file belongs to another program; ErrNewer that a newer Leat wrote it.
	ErrForeign = errors.New("journal: file is not a Leat journal")
	ErrNewer   = errors.New("journal: file was written by a newer version")
	ErrClosed  = errors.New("journal: closed")
	// ErrInvalid says that a batch could be taken by no log; it is the caller's fault.
	ErrInvalid = errors.New("journal: invalid batch")
	// ErrOccupied says that a store is already where one should be restored.
	ErrOccupied = errors.New("journal: a store is already there")
	// ErrCorrupt says that a store is not as it was written. It is never mended in silence.
	ErrCorrupt = errors.New("journal: corrupt")
)

// DamageError says that what a store has of a conversation is not what was written. It wraps [ErrCorrupt].
type DamageError struct {
	Conversation string
	// Seq is that of the first event that can't be read; 0 if it isn't an event that is damaged.
	Seq int64
	Err error
}

func (e *DamageError) Error() string {
	if e.Seq > 0 {
		return fmt.Sprintf("conversation %s is damaged at seq %d: %v", e.Conversation, e.Seq, e.Err)
	}
	return fmt.Sprintf("conversation %s is damaged: %v", e.Conversation, e.Err)
}

// Unwrap makes each a [ErrCorrupt], whatever Err wraps.
func (e *DamageError) Unwrap() []error { return []error{ErrCorrupt, e.Err} }
