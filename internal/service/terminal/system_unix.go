//go:build unix

package terminal

// supported says that commands can be ended with all that they start.
const supported = true
