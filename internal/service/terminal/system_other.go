//go:build !unix

package terminal

// supported says that the processes of a command can't be ended reliably here.
const supported = false
