package files

import "errors"

var (
	// ErrTooLarge says that a file has more bytes than it may have.
	ErrTooLarge = errors.New("files: too large")
	// ErrEmpty says that a file has no bytes.
	ErrEmpty = errors.New("files: empty")
	// ErrOutside says that a path does not lead to a file of the workspace.
	ErrOutside = errors.New("files: not below the workspace")
	// ErrOffset says that bytes of an upload came for another place than where it goes on.
	ErrOffset = errors.New("files: another offset")
	// ErrBusy says that somebody else writes to an upload, and does not stop.
	ErrBusy = errors.New("files: busy")
	// ErrTooMany says that an owner has too many uploads that are unfinished.
	ErrTooMany = errors.New("files: too many unfinished uploads")
)
