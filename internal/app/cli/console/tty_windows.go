package console

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/term"
)

// enterRaw lets the program read keys as control sequences, and write control sequences. The function that it returns restores both.
func enterRaw(in, out *os.File) (restore func() error, err error) {
	var mode uint32
	output := windows.Handle(out.Fd())
	if err := windows.GetConsoleMode(output, &mode); err != nil {
		return nil, err
	}
	if err := windows.SetConsoleMode(output, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING); err != nil {
		return nil, err
	}
	state, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, errors.Join(err, windows.SetConsoleMode(output, mode))
	}
	return func() error {
		return errors.Join(term.Restore(int(in.Fd()), state), windows.SetConsoleMode(output, mode))
	}, nil
}

// pollTime is how often the size is compared: a console reports changes only to programs that read its events.
const pollTime = 250 * time.Millisecond

// watchSize returns a channel that reports that the terminal was resized. stop waits until the goroutine has ended.
func watchSize(out *os.File) (sizes <-chan os.Signal, stop func()) {
	c, done := make(chan os.Signal, 1), make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(pollTime)
		defer ticker.Stop()
		width, height, _ := term.GetSize(int(out.Fd()))
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
			}
			if w, h, err := term.GetSize(int(out.Fd())); err == nil && (w != width || h != height) {
				width, height = w, h
				select {
				case c <- os.Interrupt: // which signal doesn't matter
				default:
				}
			}
		}
	})
	return c, func() { close(done); running.Wait() }
}
