package plugin

// ErrClosed is errClosed, for the test of Close.
var ErrClosed = errClosed
