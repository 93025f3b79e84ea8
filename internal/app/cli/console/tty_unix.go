//go:build !windows

package console

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

// enterRaw lets the program read keys instead of lines. The function that it returns restores the terminal. It also
// turns off signals for Ctrl+C, which arrives as a key. The caller must restore the terminal before the program ends,
// or the shell inherits the mode.
func enterRaw(in, _ *os.File) (restore func() error, err error) {
	state, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	return func() error { return term.Restore(int(in.Fd()), state) }, nil
}

// watchSize returns a channel that reports that the terminal was resized. Changes that come quickly are merged into
// one. stop doesn't close the channel.
func watchSize(*os.File) (sizes <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGWINCH)
	return c, func() { signal.Stop(c) }
}
