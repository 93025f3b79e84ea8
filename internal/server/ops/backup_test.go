package ops_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/ops"
	"github.com/leat-dev/leat/internal/server/servertest"
)

// copier writes a copy, or fails.
type copier struct {
	data  []byte
	err   error
	asked chan context.Context // if not nil, gets the request's context
}

func (c copier) Backup(ctx context.Context, path string) error {
	if c.err != nil {
		return c.err
	}
	if c.asked != nil {
		c.asked <- ctx
	}
	return os.WriteFile(path, c.data, 0o600)
}

// serveBackup serves the backup route on its own in-memory network. get requests a backup, and stop shuts the server down.
func serveBackup(t *testing.T, b copier, dir string) (get func(token string) (*http.Response, error), stop func()) {
	t.Helper()
	srv := server.New(server.Options{Token: "sesame"})
	if err := ops.RegisterBackup(srv, b, dir); err != nil {
		t.Fatal(err)
	}
	l := servertest.Listen()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ctx, l) }()
	client := l.Client()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		client.CloseIdleConnections()
	})
	return func(token string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/api/backup", nil)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+token)
		return client.Do(req)
	}, cancel
}

func left(t *testing.T, dir string) int {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

func TestBackup(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "backup-of-a-killed-one"), 0o700); err != nil {
		t.Fatal(err)
	}
	data := bytes.Repeat([]byte("0123456789abcdef"), 100_000)
	get, _ := serveBackup(t, copier{data: data}, dir)
	if left(t, dir) != 0 {
		t.Error("the copy that a killed process left was not deleted")
	}
	res, err := get("sesame")
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil || !bytes.Equal(got, data) || res.StatusCode != http.StatusOK {
		t.Errorf("status %d, %d bytes of %d, %v", res.StatusCode, len(got), len(data), err)
	}
	if left(t, dir) != 0 {
		t.Error("the copy is still there")
	}
	res, err = get("wrong")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("with a wrong token: status %d", res.StatusCode)
	}
}

func TestBackupFails(t *testing.T) {
	for err, want := range map[error]int{
		errors.ErrUnsupported:                  http.StatusNotImplemented,
		errors.New("no space left on /secret"): http.StatusInternalServerError,
	} {
		dir := t.TempDir()
		get, _ := serveBackup(t, copier{err: err}, dir)
		res, gerr := get("sesame")
		if gerr != nil {
			t.Fatal(gerr)
		}
		body, rerr := io.ReadAll(res.Body)
		res.Body.Close()
		if rerr != nil || res.StatusCode != want || strings.Contains(string(body), "/secret") {
			t.Errorf("%v: status %d, %s, %v", err, res.StatusCode, body, rerr)
		}
		if left(t, dir) != 0 {
			t.Errorf("%v: something is left in the folder", err)
		}
	}
}

// A copy that the gateway's shutdown interrupts can't be mistaken for a complete one.
func TestBackupInterrupted(t *testing.T) {
	dir := t.TempDir()
	asked := make(chan context.Context, 1)
	get, stop := serveBackup(t, copier{data: make([]byte, 8<<20), asked: asked}, dir)
	res, err := get("sesame")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadFull(res.Body, make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	stop()
	<-(<-asked).Done() // a client that reads before the request ends may still get the whole copy
	done := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, res.Body)
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil {
			t.Error("the copy was interrupted, and the client can't see it")
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the copy neither ended nor continued within 30 s")
	}
}

// A second backup is refused as long as the first one's copy is on the disk, including while it is being sent.
func TestBackupOneAtATime(t *testing.T) {
	dir := t.TempDir()
	get, _ := serveBackup(t, copier{data: make([]byte, 8<<20)}, dir)
	first, err := get("sesame")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Body.Close()
	for range 3 {
		second, err := get("sesame")
		if err != nil {
			t.Fatal(err)
		}
		second.Body.Close()
		if second.StatusCode != http.StatusTooManyRequests || second.Header.Get("Retry-After") == "" {
			t.Errorf("a second backup: status %d, Retry-After %q", second.StatusCode, second.Header.Get("Retry-After"))
		}
		if n := left(t, dir); n != 1 {
			t.Errorf("%d copies on the disk, want 1", n)
		}
	}
	if _, err := io.Copy(io.Discard, first.Body); err != nil {
		t.Fatal(err)
	}
	last, err := get("sesame")
	if err != nil {
		t.Fatal(err)
	}
	last.Body.Close()
	if last.StatusCode != http.StatusOK {
		t.Errorf("after the first one: status %d", last.StatusCode)
	}
}
