package process

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"unicode"
)

const (
	maxLine = 1 << 10  // bytes of a line that are kept
	maxLog  = 64 << 10 // bytes that are logged: enough to see why, too little to fill a disk
	maxLast = 300      // bytes of the last line that readers are told
)

// Aside takes what a process prints beside its stream.
type Aside struct {
	Log *slog.Logger

	mu     sync.Mutex
	line   string // the last that is not blank
	logged int
	left   int // lines that were not logged
}

// ReadAll takes all there is, whatever becomes of it: a process must not stand still for it.
func (s *Aside) ReadAll(r io.Reader) {
	b := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := b.ReadSlice('\n')
		s.add(line)
		for errors.Is(err, bufio.ErrBufferFull) { // the rest of a long line
			_, err = b.ReadSlice('\n')
		}
		if err != nil {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left > 0 {
		s.Log.Debug("agent printed more", "lines", s.left)
	}
}

func (s *Aside) add(b []byte) {
	line := Clean(string(bytes.TrimSpace(b)))
	if line == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line = line
	if s.logged += len(line); s.logged > maxLog {
		s.left++
		return
	}
	s.Log.Debug("agent printed", "line", line)
}

// Refill lets as much be logged again: for a process that goes on.
func (s *Aside) Refill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logged = 0
}

// Last returns the last line, short enough to be shown; empty where there is none.
func (s *Aside) Last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.line) <= maxLast {
		return s.line
	}
	return strings.ToValidUTF8(s.line[:maxLast], "") + "…"
}

// Clean makes text out of whatever was printed.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
}
