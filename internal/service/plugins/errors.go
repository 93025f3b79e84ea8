package plugins

import "errors"

var (
	// ErrInvalid says that a request asks for what can't be.
	ErrInvalid = errors.New("plugins: invalid request")
	// ErrNotFound says that no plugin of that name is installed.
	ErrNotFound = errors.New("plugins: not installed")
	// ErrBusy says that another installation or removal runs.
	ErrBusy = errors.New("plugins: another installation runs")
)

// Failure is why an installation failed, and in which phase.
type Failure struct {
	Phase Phase
	Err   error
}

func (f *Failure) Error() string { return string(f.Phase) + ": " + f.Err.Error() }

func (f *Failure) Unwrap() error { return f.Err }
