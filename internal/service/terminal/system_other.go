//go:build !unix

package terminal

// supported says that commands can't be ended here with all that they start.
const supported = false
