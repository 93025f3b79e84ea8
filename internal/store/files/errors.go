package files

import "errors"

var (
	// ErrTooLarge says that a file exceeds its limit.
	ErrTooLarge = errors.New("files: too large")
	// ErrEmpty says that a file has no bytes.
	ErrEmpty = errors.New("files: empty")
	// ErrOutside says that a path doesn't name a file in the workspace.
	ErrOutside = errors.New("files: path is outside the workspace")
	// ErrOffset says that the bytes of an upload don't start at its current offset.
	ErrOffset = errors.New("files: wrong offset")
	// ErrBusy says that another request is writing to the upload and didn't stop in time.
	ErrBusy = errors.New("files: upload is in use")
	// ErrTooMany says that the owner has too many unfinished uploads.
	ErrTooMany = errors.New("files: too many unfinished uploads")
)
