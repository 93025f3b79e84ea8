package attacks

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// openTerminal returns both ends of a pseudo-terminal that passes bytes on as they are.
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("SKIPPED: no pseudo-terminals here: %v; mount /dev/pts", err)
	}
	t.Cleanup(func() { _ = person.Close() })
	control := func(request uintptr, value *int32) {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, person.Fd(), request, uintptr(unsafe.Pointer(value))); errno != 0 {
			t.Fatal(errno)
		}
	}
	var unlock, number int32
	control(syscall.TIOCSPTLCK, &unlock)
	control(syscall.TIOCGPTN, &number)
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return person, program
}

// TestDecodeOnATerminal decodes a stream whose text holds escapes of terminals. A terminal gets them written out; a pipe gets
// each byte as it is.
func TestDecodeOnATerminal(t *testing.T) {
	const hostile = "\x1b]0;owned\a\x1b[2J \u009b31m"
	stream := filepath.Join(t.TempDir(), "stream.ndjson")
	line := `{"type":"chunk","text":"before \u001b]0;owned\u0007\u001b[2J \u009b31m after"}` + "\n" + `{"type":"done"}` + "\n"
	if err := os.WriteFile(stream, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, as := range []string{"text", "transcript", "events"} {
		t.Run(as, func(t *testing.T) {
			person, side := openTerminal(t)
			cmd := exec.CommandContext(t.Context(), program, "decode", "--dialect", "eliza-actions", "--as", as, stream)
			cmd.Stdout = side
			err := cmd.Run()
			_ = side.Close()
			if err != nil {
				t.Fatal(err)
			}
			shown, err := io.ReadAll(person)
			if err != nil && !errors.Is(err, syscall.EIO) { // Linux reports EIO when the other end is closed
				t.Fatal(err)
			}
			text := strings.ReplaceAll(string(shown), "\r\n", "\n")
			if strings.ContainsAny(text, "\x1b\a\u009b\r") || !strings.Contains(text, `before \u001b]0;owned\u0007\u001b[2J \u009b31m after`) {
				t.Errorf("the terminal gets %q", text)
			}
		})
	}
	t.Run("pipe", func(t *testing.T) {
		out, err := exec.CommandContext(t.Context(), program, "decode", "--dialect", "eliza-actions", stream).Output()
		if err != nil || !strings.Contains(string(out), hostile) {
			t.Errorf("the pipe gets %q, %v", out, err)
		}
	})
}
