//go:build !windows

package console

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

// enterRaw lets the program read keys instead of lines. The function that it returns restores the terminal.
func enterRaw(in, _ *os.File) (restore func() error, err error) {
	state, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	return func() error { return term.Restore(int(in.Fd()), state) }, nil
}

// watchSize returns a channel that reports that the terminal was resized.
func watchSize(*os.File) (sizes <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGWINCH)
	return c, func() { signal.Stop(c) }
}
