package killer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	leat "github.com/leat-dev/leat/clients/go"
)

// TestKillerDeletedLock deletes the lock file of a running gateway. A second one is still refused, however often it is
// started, and the first keeps its locks and works.
func TestKillerDeletedLock(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	first := newProgram(t, data, "--agent", "demo?speed=20")
	c := begin(t, first)
	id := converse(t, c, leat.CreateOptions{}, "count to 3")
	before := locks(t, first, "leat.db")
	if before == 0 {
		t.Fatal("SQLite has no lock on the database")
	}
	for range 2 {
		if err := os.Remove(filepath.Join(data, "leat.lock")); err != nil {
			t.Fatal(err)
		}
		if said := refused(t, data); !strings.Contains(said, "in use") || !strings.Contains(said, "leat.lock was deleted") {
			t.Errorf("%q does not explain that another gateway uses the folder", said)
		}
		awaitEnd(t, c, id, send(t, c, id))
		if now := locks(t, first, "leat.db"); now != before {
			t.Errorf("SQLite has %d locks on the database, had %d", now, before)
		}
	}
	if err := first.end(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	begin(t, newProgram(t, data))
}

// locks counts the POSIX locks that the program has on a file in its folder. SQLite has one while it has the file open.
func locks(t *testing.T, p *program, name string) (n int) {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Stat(filepath.Join(p.data, name), &st); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile("/proc/locks")
	if err != nil {
		t.Skipf("SKIPPED: needs /proc/locks: %v", err)
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line) // "1: POSIX  ADVISORY  READ 4711 08:02:131 1073741826 1073742335"
		if len(f) > 5 && f[1] == "POSIX" && f[4] == fmt.Sprint(p.cmd.Process.Pid) && strings.HasSuffix(f[5], fmt.Sprint(":", st.Ino)) {
			n++
		}
	}
	return n
}
