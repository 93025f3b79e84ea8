//go:build unix

package openclaw

import (
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/leat-dev/leat/event"
)

// A path that names a pipe is not a file, and reading it must not block.
func TestMediaPathIsPipe(t *testing.T) {
	root := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(root, "pic.png"), 0o600); err != nil {
		t.Skip("SKIPPED: needs a file system with named pipes; set TMPDIR to one:", err)
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, 4, showFile("/srv/claw/ws/pic.png", nil))
		defer f.stop()
		a := newAgent(t, f, func(c *config) { c.MediaRoot = root })
		defer a.Close()
		h := newTurnHost(t, "hello")
		if err := h.runUntil(t.Context(), a, nil); err != nil {
			t.Fatal(err)
		}
		h.checkTurn(t, event.Completed, "Here.")
		if parts := h.parts(event.KindMedia); len(parts) != 1 || parts[0].Error == nil {
			t.Errorf("parts: %+v", parts)
		}
	})
}
