//go:build unix

package serve

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	leat "github.com/leat-dev/leat/clients/go"
)

// A Unix socket is there for its owner and group; one of a killed program is replaced, one in use is not.
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
	if err := closeListeners(again); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listen([]string{"unix:" + path}); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("a file: %v", err)
	}
}

// Where one address can't be had, none of them is kept.
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

// A gateway on a Unix socket below a path: what people are told leads to the public URL.
func TestServeUnix(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	s := serveWith(t, t.TempDir(), func(c *configuration) {
		c.Listen, c.PublicURL, c.Token = []string{"unix:" + socket}, "https://chat.example/leat", "t"
	}, "demo?speed=0")
	for _, want := range []string{"listens on unix:" + socket, "page       https://chat.example/leat/\n", "--url https://chat.example/leat\n"} {
		if !strings.Contains(s.out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, s.out)
		}
	}
	c := &leat.Client{URL: "http://chat.example/leat", Token: "t", HTTP: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}}
	if _, err := c.Create(t.Context(), leat.CreateOptions{}); err != nil {
		t.Error(err)
	}
	c.HTTP.CloseIdleConnections()
	s.signals <- os.Interrupt
	s.ends()
	if _, err := os.Stat(socket); !os.IsNotExist(err) {
		t.Errorf("the socket is left behind: %v", err)
	}
}
