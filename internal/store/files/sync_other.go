//go:build !unix

package files

// syncDir does nothing on systems that can't sync folders.
func syncDir(string) error { return nil }

const nonblock = 0
