//go:build unix

package serve

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/server"
)

// Only the owner and the group of a Unix socket may connect. The socket of a killed program is replaced, one in use is not.
func TestListenUnix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	first, err := listen([]string{"unix:" + path})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != socketMode {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := listen([]string{"unix:" + path}); err == nil || !strings.Contains(err.Error(), "another program is listening") {
		t.Errorf("in use: %v", err)
	}
	first[0].(*net.UnixListener).SetUnlinkOnClose(false) // as a kill leaves it
	if err := first[0].Close(); err != nil {
		t.Fatal(err)
	}
	again, err := listen([]string{"unix:" + path})
	if err != nil {
		t.Fatal("left behind:", err)
	}
	if err := server.CloseListeners(again); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listen([]string{"unix:" + path}); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("a file: %v", err)
	}
}

// If one address can't be opened, the others are closed again.
func TestListenAllOrNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	_, err := listen([]string{"unix:" + path, "127.0.0.1:1:1"})
	if err == nil {
		t.Fatal("it listens")
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the first is still there: %v", err)
	}
}
