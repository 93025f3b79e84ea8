//go:build unix

package openclaw

import (
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/leat-dev/leat/event"
)

// A pipe that lies where a file is named is none, and nobody waits for who would write to it.
func TestMediaIsAPipe(t *testing.T) {
	root := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(root, "pic.png"), 0o600); err != nil {
		t.Skip("SKIPPED: needs a file system with named pipes; set TMPDIR to one:", err)
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, 4, shows("/srv/claw/ws/pic.png", nil))
		defer f.stop()
		a := newAgent(t, f, func(c *Config) { c.MediaRoot = root })
		defer a.Close()
		h := newHouse(t, "hello")
		if err := h.life(t.Context(), a, nil); err != nil {
			t.Fatal(err)
		}
		h.want(t, event.Completed, "Here.")
		if parts := h.parts(event.KindMedia); len(parts) != 1 || parts[0].Error == nil {
			t.Errorf("parts: %+v", parts)
		}
	})
}
