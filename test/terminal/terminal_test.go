//go:build linux

package terminal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/vt"
	"golang.org/x/sys/unix"
)

// waitLimit is how long a test waits for a screen that must appear. It is long because the machine may be busy.
const waitLimit = time.Minute

// height is the number of rows of all terminals here.
const height = 24

// term is a program in a pseudo-terminal, and the emulator that shows its output.
type term struct {
	t      *testing.T
	person *os.File // the user's end
	cmd    *exec.Cmd
	exited chan error

	reading  sync.WaitGroup
	mu       sync.Mutex
	emulator *vt.Emulator
	raw      strings.Builder
	changed  chan struct{} // closed at the next output
}

// openTerminal returns both ends of a pseudo-terminal.
func openTerminal(t *testing.T, width int) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			t.Skip("SKIPPED: this system has no pseudo-terminals; mount /dev/pts to have leat chat tested in one")
		}
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = person.Close() })
	setSize(t, person, width)
	number := 0
	control(t, person, func(fd int) (err error) {
		if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			return err
		}
		number, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
		return err
	})
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return person, program
}

// control calls f with the file's descriptor, and leaves the file in non-blocking mode.
func control(t *testing.T, f *os.File, call func(fd int) error) {
	t.Helper()
	raw, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failure error
	if err := raw.Control(func(fd uintptr) { failure = call(int(fd)) }); err != nil || failure != nil {
		t.Fatal(err, failure)
	}
}

func setSize(t *testing.T, person *os.File, width int) {
	t.Helper()
	control(t, person, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: height, Col: uint16(width)})
	})
}

// chat runs leat chat in a terminal of a width. home has the history.
func chat(t *testing.T, url, home string, width int, args ...string) *term {
	t.Helper()
	return chatWith(t, url, home, width, "LEAT_TEST=", args...)
}

// chatWith is chat with a variable of the environment.
func chatWith(t *testing.T, url, home string, width int, variable string, args ...string) *term {
	t.Helper()
	person, program := openTerminal(t, width)
	s := &term{t: t, person: person, exited: make(chan error, 1), emulator: vt.NewEmulator(width, height), changed: make(chan struct{})}
	s.cmd = exec.Command(leat, append([]string{"chat", "--url", url}, args...)...)
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = program, program, program
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	// The emulator doesn't wrap lines again when it becomes narrower, as xterm.
	s.cmd.Env = append(os.Environ(), "TERM=xterm-256color", "XTERM_VERSION=emulator", "NO_COLOR=", "HOME="+home, "XDG_STATE_HOME="+filepath.Join(home, "state"), "LEAT_API_TOKEN=", "DISPLAY=", "WAYLAND_DISPLAY=", "STY=", variable)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := program.Close(); err != nil {
		t.Fatal(err)
	}
	s.reading.Go(s.read)
	go func() { s.exited <- s.cmd.Wait() }()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // it has usually ended
		_ = person.Close()
		s.reading.Wait()
	})
	return s
}

// read passes the output to the emulator until the program has closed the terminal.
func (s *term) read() {
	b := make([]byte, 64<<10)
	for {
		n, err := s.person.Read(b)
		s.mu.Lock()
		s.raw.Write(b[:n])
		_, _ = s.emulator.Write(b[:n]) // never fails
		close(s.changed)
		s.changed = make(chan struct{})
		s.mu.Unlock()
		if err != nil {
			return // Linux reports EIO when the program has ended
		}
	}
}

// text returns the scrollback and the screen, without trailing spaces.
func (s *term) text() string {
	var rows []string
	add := func(y int, cellAt func(x, y int) *uv.Cell) {
		var b strings.Builder
		for x := range s.emulator.Width() {
			if c := cellAt(x, y); c != nil && c.Width > 0 {
				b.WriteString(c.Content)
			}
		}
		rows = append(rows, strings.TrimRight(b.String(), " "))
	}
	for y := range s.emulator.ScrollbackLen() {
		add(y, s.emulator.ScrollbackCellAt)
	}
	for y := range s.emulator.Height() {
		add(y, s.emulator.CellAt)
	}
	return strings.TrimRight(strings.Join(rows, "\n"), "\n")
}

// until waits for a screen. The condition gets the scrollback and the screen as text.
func (s *term) until(what string, is func(text string) bool) string {
	s.t.Helper()
	late := time.After(waitLimit)
	for {
		s.mu.Lock()
		text, changed := s.text(), s.changed
		s.mu.Unlock()
		if is(text) {
			return text
		}
		select {
		case <-changed:
		case <-late:
			s.t.Fatalf("%s does not appear:\n%s", what, text)
		}
	}
}

// sees waits until all texts are visible.
func (s *term) sees(texts ...string) string {
	s.t.Helper()
	return s.until(fmt.Sprintf("%q", texts), func(screen string) bool {
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				return false
			}
		}
		return true
	})
}

// isReady waits until the input is empty and no turn runs, after a text is visible.
func (s *term) isReady(texts ...string) string {
	s.t.Helper()
	return s.until(fmt.Sprintf("ready after %q", texts), func(screen string) bool {
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				return false
			}
		}
		rows := strings.Split(screen, "\n")
		return len(rows) > 1 && rows[len(rows)-1] == "›" && strings.Contains(rows[len(rows)-2], "· ready")
	})
}

// keys types.
func (s *term) keys(keys string) {
	s.t.Helper()
	if _, err := s.person.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// resize changes the width.
func (s *term) resize(width int) {
	s.t.Helper()
	s.mu.Lock()
	s.emulator.Resize(width, height)
	s.mu.Unlock()
	setSize(s.t, s.person, width)
}

// ends waits until the program has ended and all of its output was read.
func (s *term) ends() {
	s.t.Helper()
	select {
	case err := <-s.exited:
		if err != nil {
			s.t.Errorf("leat chat: %v\n%s", err, s.text())
		}
		s.reading.Wait()
	case <-time.After(waitLimit):
		s.t.Fatal("leat chat does not end")
	}
}

// conversation returns the id of the conversation, which the program has printed at its end.
func (s *term) conversation() string {
	s.t.Helper()
	id := regexp.MustCompile(`leat chat -c ([0-9a-f-]{36})`).FindStringSubmatch(s.raw.String())
	if id == nil {
		s.t.Fatalf("no way to continue:\n%s", s.text())
	}
	return id[1]
}
