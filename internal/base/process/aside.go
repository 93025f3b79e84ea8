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
	maxLine = 1 << 10  // bytes of a line that are processed
	maxLog  = 64 << 10 // bytes that are logged: enough for a diagnosis, too few to fill a disk
	maxLast = 300      // bytes of the last line that users see
)

// Aside reads and logs what a process prints next to its stream, such as its standard error.
type Aside struct {
	Log *slog.Logger

	mu       sync.Mutex
	line     string // the last line that isn't blank
	logged   int
	unlogged int // lines that weren't logged
}

// ReadAll reads until the end, even if nothing is logged any longer: a process blocks if its output isn't read.
func (s *Aside) ReadAll(r io.Reader) {
	b := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := b.ReadSlice('\n')
		s.add(line)
		for errors.Is(err, bufio.ErrBufferFull) { // the remainder of a long line
			_, err = b.ReadSlice('\n')
		}
		if err != nil {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unlogged > 0 {
		s.Log.Debug("agent printed more", "lines", s.unlogged)
	}
}

// add logs a line and remembers it as the last one. Lines beyond the limit are only counted.
func (s *Aside) add(b []byte) {
	line := Clean(string(bytes.TrimSpace(b)))
	if line == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line = line
	if s.logged += len(line); s.logged > maxLog {
		s.unlogged++
		return
	}
	s.Log.Debug("agent printed", "line", line)
}

// Refill resets the limit of logged bytes, for a process that runs on.
func (s *Aside) Refill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logged = 0
}

// Last returns the last line, shortened for display, or "".
func (s *Aside) Last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.line) <= maxLast {
		return s.line
	}
	return strings.ToValidUTF8(s.line[:maxLast], "") + "…"
}

// Clean replaces the control characters in printed text.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
}
