//go:build !unix

package files

// syncDir does nothing where folders can't be synced.
func syncDir(string) error { return nil }

const nonblock = 0
