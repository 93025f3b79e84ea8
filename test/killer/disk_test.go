//go:build linux

package killer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/transcript"
)

// smallDisk runs the program in its own mount namespace with a tmpfs of the given size in MB.
func smallDisk(t *testing.T, p *program, megabytes int) {
	t.Helper()
	if err := os.MkdirAll(p.data, 0o700); err != nil {
		t.Fatal(err)
	}
	mount := []string{
		"unshare", "--map-root-user", "--mount", "sh", "-c",
		fmt.Sprintf(`mount -t tmpfs -o size=%dm,mode=700 tmpfs "$0" && exec "$@"`, megabytes), p.data,
	}
	probe := append(mount[:len(mount):len(mount)], "true")
	if out, err := exec.Command(probe[0], probe[1:]...).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: a full disk needs unshare (util-linux) and user namespaces: %v: %s", err, out)
	}
	p.wrap = mount
}

// filler is a file that uses all free space of the program's disk.
type filler struct{ path string }

func fill(t *testing.T, p *program) *filler {
	t.Helper()
	// The mount namespace of the program is accessible through /proc.
	f := &filler{filepath.Join(fmt.Sprintf("/proc/%d/root", p.cmd.Process.Pid), p.data, "filler")}
	out, err := os.Create(f.path)
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 4096)
	for err == nil {
		_, err = out.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("fill the disk: %v", err)
	}
	if err := out.Close(); err != nil && !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	return f
}

func (f *filler) remove(t *testing.T) {
	t.Helper()
	if err := os.Remove(f.path); err != nil {
		t.Fatal(err)
	}
}

// TestKillerFullDisk fills the disk in the middle of a pushed turn. Viewers must see only events that are in the log;
// after space is freed, the turn continues without a gap.
func TestKillerFullDisk(t *testing.T) {
	w := newWorld(t)
	w.program = newProgram(t, filepath.Join(t.TempDir(), "data"))
	smallDisk(t, w.program, 40)
	// The capture of raw bytes would free its space when the disk is full, so it is turned off.
	w.program.env = append(w.program.env, "LEAT_RECORD_ENABLED=false")
	w.client = begin(t, w.program)
	if _, err := w.client.Create(t.Context(), leat.CreateOptions{ID: "c"}); err != nil {
		t.Fatal(err)
	}
	v := &rawViewer{seen: newSeen(w, "viewer"), conversation: "c", rng: w.rng("viewer")}
	w.tasks.Go(func() { v.run(w.ctx) })

	body := bulk()
	expected := pushed(t, "eliza-actions", body)
	p := &producer{w: w, conversation: "c", dialect: "eliza-actions", rng: w.rng("producer")}
	p.body = func(int) []byte { return body }
	p.expect = func(int, []byte) *answer { return &expected }
	p.pace = time.Millisecond
	full := make(chan struct{})
	p.gate = &gate{at: 100_000, open: full} // the rest of it comes when the disk is full
	p.n = 1
	over := make(chan bool, 1)
	if !beginsStreaming(w, v, func() { w.tasks.Go(func() { over <- p.turn(v) }) }) {
		w.report()
		t.Fatal("the turn did not start")
	}

	f := fill(t, w.program)
	close(full)
	w.trace.add("disk full")
	if err := awaitReady(w.ctx, w.program, http.StatusServiceUnavailable); err != nil {
		t.Fatalf("the full disk is not reported: %v", err)
	}
	var refusal *leat.Error
	if _, err := w.client.Create(w.ctx, leat.CreateOptions{ID: "d"}); !errors.As(err, &refusal) || !refusal.Temporary() {
		t.Errorf("a new conversation on a full disk: %v, want a temporary error", err)
	}
	f.remove(t)
	w.trace.add("room again")
	if err := awaitReady(w.ctx, w.program, http.StatusOK); err != nil {
		t.Fatalf("after space was freed: %v", err)
	}
	select {
	case ok := <-over:
		if !ok {
			w.report()
			t.Fatal("the producer gave up")
		}
	case <-time.After(calmLimit):
		t.Fatal("the turn did not end after space was freed")
	}
	if err := w.program.end(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	w.report()
	w.mu.Lock()
	defer w.mu.Unlock()
	for turn, a := range w.expected["c"] {
		v.view(func(tr *transcript.Transcript) {
			if err := a.check(tr, turn); err != nil {
				t.Error(err)
			}
		})
	}
}

// bulk is a stream that is larger than the free space within the journal's files, but smaller than the disk.
func bulk() []byte {
	var b bytes.Buffer
	pad := strings.Repeat("lorem ipsum ", 200)
	for i := range 1200 {
		fmt.Fprintf(&b, `{"type":"chunk","text":"%d %s"}`+"\n", i, pad)
	}
	b.WriteString(`{"type":"done"}` + "\n")
	return b.Bytes()
}

func beginsStreaming(w *world, r reader, start func()) bool {
	start()
	ctx, cancel := context.WithTimeout(w.ctx, calmLimit)
	defer cancel()
	return await(ctx, r, func(t *transcript.Transcript) bool { return len(t.Messages) > 0 && t.Messages[0].Size() > 10_000 })
}

// awaitReady waits until /readyz responds with the status.
func awaitReady(ctx context.Context, p *program, status int) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	last := 0
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url()+"/readyz", nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
			if last = resp.StatusCode; last == status {
				return nil
			}
		}
		select {
		case <-time.After(20 * time.Millisecond): // polls another process
		case <-ctx.Done():
			return fmt.Errorf("/readyz: status %d, want %d", last, status)
		}
	}
}
