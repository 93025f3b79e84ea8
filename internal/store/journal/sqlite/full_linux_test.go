package sqlite_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/sqlite"
)

func init() { children["LEAT_FULL_DIR"] = fullChild }

// TestDiskFull fills a real file system of 40 MiB, which a child process mounts in its own namespace.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "LEAT_FULL_DIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == cannotMount || err != nil && exit == nil {
		t.Skipf("SKIPPED: mounting a file system needs user namespaces (sysctl kernel.unprivileged_userns_clone=1, or root): %v\n%s", err, out)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

const cannotMount = 77

func fullChild(dir string) error {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=40m"); err != nil {
		fmt.Fprintln(os.Stderr, "mount:", err)
		os.Exit(cannotMount)
	}
	defer syscall.Unmount(dir, syscall.MNT_DETACH)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	store := filepath.Join(dir, "store")
	j, err := sqlite.Open(sqlite.Options{Dir: store, Logger: quiet})
	if err != nil {
		return err
	}
	defer func() {
		if j != nil {
			j.Close()
		}
	}()
	if err := j.Append(ctx, journal.Batch{Conversation: "c", Create: true, Summary: &journal.Summary{}}); err != nil {
		return err
	}
	batch := func(head int64, size int) journal.Batch {
		return journal.Batch{Conversation: "c", Expected: head, Keys: []journal.KeyValue{{Key: "head", Value: fmt.Append(nil, head+1)}}, Events: []event.Event{
			{Seq: head + 1, Type: event.Record, Body: &event.Body{RecordKind: "k", Data: json.RawMessage(`"` + strings.Repeat("x", size) + `"`)}},
		}}
	}
	// fill appends until the disk is full, with ever smaller batches.
	head := int64(0)
	fill := func() error {
		for size := 100 << 10; size > 1; {
			switch err := j.Append(ctx, batch(head, size)); {
			case err == nil:
				head++
			case errors.Is(err, journal.ErrFull):
				size /= 4
			default:
				return fmt.Errorf("append before the disk is full: %w", err)
			}
		}
		return nil
	}
	whole := func() error {
		r, err := j.Read(ctx, "c", 0, 0)
		if err != nil || r.Head != head || int64(len(r.Events)) != head {
			return fmt.Errorf("head is %d, want %d; %d events, %w", r.Head, head, len(r.Events), err)
		}
		v, err := j.Get(ctx, "head")
		if err != nil || string(v) != fmt.Sprint(head) {
			return fmt.Errorf("key is %s, want %d, %w", v, head, err)
		}
		return nil
	}
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 12<<20), 0o600); err != nil {
		return err
	}
	if err := errors.Join(fill(), whole()); err != nil {
		return err
	}
	if err := j.Healthy(); !errors.Is(err, journal.ErrFull) {
		return fmt.Errorf("healthy: %w", err)
	}
	// The reserve allows turns to end, and nothing else.
	for range 20 {
		end := batch(head, 200)
		end.Terminal = true
		if err := j.Append(ctx, end); err != nil {
			return fmt.Errorf("the end of a turn: %w", err)
		}
		head++
		if err := j.Append(ctx, batch(head, 200)); !errors.Is(err, journal.ErrFull) {
			return fmt.Errorf("a batch that ends no turn, when the reserve is released: %w", err)
		}
	}
	if err := j.Healthy(); !errors.Is(err, journal.ErrFull) {
		return fmt.Errorf("healthy with the reserve released: %w", err)
	}
	if err := whole(); err != nil {
		return err
	}
	// If the disk is completely full and the reserve is used up, opening fails with a clear error.
	reopen := func() error {
		if err := j.Close(); err != nil {
			return fmt.Errorf("close on a full disk: %w", err)
		}
		j = nil
		if err := os.WriteFile(filepath.Join(dir, "filler2"), make([]byte, 40<<20), 0o600); err == nil {
			return errors.New("the disk is not full")
		}
		j, err = sqlite.Open(sqlite.Options{Dir: store, Logger: quiet})
		return err
	}
	if err := reopen(); !errors.Is(err, journal.ErrFull) {
		return fmt.Errorf("open with no space at all: %w", err)
	}
	if err := os.Remove(filepath.Join(dir, "filler2")); err != nil {
		return err
	}
	if j, err = sqlite.Open(sqlite.Options{Dir: store, Logger: quiet}); err != nil {
		return fmt.Errorf("open with little space: %w", err)
	}
	if err := whole(); err != nil {
		return err
	}
	// When there is space again, calling Healthy is enough to notice it.
	recovers := func() error {
		for j.Healthy() != nil {
			select {
			case <-ctx.Done():
				return fmt.Errorf("never healthy again: %w", j.Healthy())
			case <-time.After(20 * time.Millisecond):
			}
		}
		if err := j.Append(ctx, batch(head, 1000)); err != nil {
			return fmt.Errorf("append when there is space: %w", err)
		}
		head++
		if fi, err := os.Stat(filepath.Join(store, "ballast")); err != nil || fi.Size() < 1<<20 {
			return fmt.Errorf("the reserve was not restored: %w", err)
		}
		return whole()
	}
	if err := errors.Join(os.Remove(filler), recovers()); err != nil {
		return err
	}
	// A start on a full disk uses the reserve, so that turns can end and conversations can be read.
	if err := reopen(); err != nil {
		return fmt.Errorf("open on a full disk, with the reserve: %w", err)
	}
	if err := j.Healthy(); !errors.Is(err, journal.ErrFull) {
		return fmt.Errorf("healthy after a start on a full disk: %w", err)
	}
	end := batch(head, 200)
	end.Terminal = true
	if err := j.Append(ctx, end); err != nil {
		return fmt.Errorf("the end of a turn, after a start on a full disk: %w", err)
	}
	head++
	if err := j.Append(ctx, batch(head, 200)); !errors.Is(err, journal.ErrFull) {
		return fmt.Errorf("a batch that ends no turn, after a start on a full disk: %w", err)
	}
	return errors.Join(whole(), os.Remove(filepath.Join(dir, "filler2")), recovers())
}
