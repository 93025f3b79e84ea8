//go:build unix

package terminal

// supported says that the process group of a command can be killed.
const supported = true
