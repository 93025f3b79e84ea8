package plugins

import "errors"

var (
	// ErrInvalid says that a request is malformed or asks for something unsupported.
	ErrInvalid = errors.New("plugins: invalid request")
	// ErrNotFound says that no plugin with the name is installed.
	ErrNotFound = errors.New("plugins: not installed")
	// ErrBusy says that another installation or removal is running.
	ErrBusy = errors.New("plugins: another installation runs")
)

// Failure is the error of an installation that was started. Phase is the phase in which it failed.
type Failure struct {
	Phase Phase
	Err   error
}

// Error returns the phase and the cause, as shown to the admin.
func (f *Failure) Error() string { return string(f.Phase) + ": " + f.Err.Error() }

// Unwrap returns the cause, so that callers can test for the cancellation of the context.
func (f *Failure) Unwrap() error { return f.Err }
