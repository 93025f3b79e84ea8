//go:build unix

package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/journaltest"
	"github.com/leat-dev/leat/internal/store/journal/sqlite"
)

const crashLogs = 6

// TestCrash kills a process at each named point, several times with one folder, and checks the store: everything acknowledged
// exists, no batch exists partly, and no file contains deleted text.
func TestCrash(t *testing.T) {
	for _, point := range []string{"before-commit", "after-commit-before-ack", "mid-settle", "mid-garbage", "mid-delete", "mid-backup"} {
		t.Run(point, func(t *testing.T) {
			dir := t.TempDir()
			acked := map[string]int64{}
			deleted := map[string]bool{}
			for round, hits := range []int{1, 3, 20} {
				if (point == "mid-delete" || point == "mid-backup") && hits > 3 {
					hits = 5 // each of these takes some commits
				}
				crash(t, dir, point, hits, func(word, id string, n int64) {
					switch word {
					case "ack":
						acked[id] = n
					case "deleted":
						deleted[id] = true
					}
				})
				after(t, dir, round, acked, deleted)
			}
		})
	}
}

// crash runs a child process until it is killed, and returns its output.
func crash(t *testing.T, dir, point string, hits int, said func(word, id string, n int64)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), "LEAT_CRASH_DIR="+dir, "LEAT_CRASH_POINT="+point, fmt.Sprint("LEAT_CRASH_HITS=", hits))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadString('\n')
		if err != nil { // the end, or a line that was cut short
			break
		}
		var word, id string
		var n int64
		if _, err := fmt.Sscan(line, &word, &id, &n); err != nil {
			t.Errorf("unexpected output of the child: %q", line)
			continue
		}
		said(word, id, n)
	}
	err = cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL || ctx.Err() != nil {
		t.Fatalf("the child did not crash at %s: %v\n%s", point, err, stderr.String())
	}
}

// after checks the store after a crash.
func after(t *testing.T, dir string, round int, acked map[string]int64, deleted map[string]bool) {
	t.Helper()
	j := open(t, sqlite.Options{Dir: filepath.Join(dir, "store"), Logger: quiet})
	for i := range crashLogs {
		id := fmt.Sprint("c", i)
		s, err := j.Conversation(t.Context(), id)
		if errors.Is(err, journal.ErrNotFound) && acked[id] == 0 {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if s.Head < acked[id] {
			t.Errorf("%s: seq %d was acknowledged, head is %d", id, acked[id], s.Head)
		}
		w := resume(t, i, s.Head)
		journaltest.CheckLog(t, j, id, w.Log)
		if v, err := j.Get(t.Context(), id+"/head"); s.Head > 0 && (err != nil || string(v) != fmt.Sprint(s.Head)) {
			t.Errorf("%s: key is %s, %v; head is %d", id, v, err, s.Head)
		}
	}
	// A conversation whose delete was interrupted either exists completely or is deleted.
	all, err := j.Conversations(t.Context(), journal.Query{Owner: "gone"})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if deleted[s.ID] {
			t.Errorf("deleted conversation %s is listed", s.ID)
		}
		if r, err := j.Read(t.Context(), s.ID, 0, 0); err != nil || int64(len(r.Events)) != r.Head {
			t.Errorf("%s: %d events, head %d, %v", s.ID, len(r.Events), r.Head, err)
		}
		deleted[s.ID] = true
		if err := j.Delete(t.Context(), s.ID); err != nil {
			t.Error(err)
		}
	}
	// Repeating an interrupted delete completes it.
	for i := range (round + 1) * 200 {
		if err := j.Delete(t.Context(), goneID(i%(round+1), i/(round+1))); err != nil && !errors.Is(err, journal.ErrNotFound) {
			t.Error(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if found := grep(t, filepath.Join(dir, "store"), "marker-of-"); found != "" {
		t.Errorf("deleted text is in %s", found)
	}
	// A file with a backup's final name is complete.
	backups, err := filepath.Glob(filepath.Join(dir, "backup*.db"))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range backups {
		to := t.TempDir()
		if err := sqlite.Restore(t.Context(), b, to); err != nil {
			t.Errorf("restore %s: %v", b, err)
		}
		if err := os.Remove(b); err != nil {
			t.Error(err)
		}
	}
}

func goneID(round, n int) string { return fmt.Sprint("gone-", round, "-", n) }

// resume returns the generator of a conversation at a head, which must be the end of a batch.
func resume(t testing.TB, i int, head int64) *journaltest.Writer {
	w := &journaltest.Writer{Pick: journaltest.Seeded(uint64(i) + 77)}
	for int64(len(w.Log)) < head {
		w.Next()
	}
	if int64(len(w.Log)) != head {
		t.Fatalf("c%d: head %d is inside a batch", i, head)
	}
	return w
}

func init() {
	children["LEAT_CRASH_DIR"] = func(dir string) error {
		hits, err := strconv.ParseInt(os.Getenv("LEAT_CRASH_HITS"), 10, 64)
		if err == nil {
			crashChild(dir, os.Getenv("LEAT_CRASH_POINT"), hits)
		}
		return err
	}
}

// crashChild is the process that crashes. It appends, compacts, deletes and backs up until it is killed.
func crashChild(dir, point string, hits int64) {
	var mu sync.Mutex
	say := func(word, id string, n int64) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(os.Stdout, word, id, n)
	}
	must := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
	}
	var met atomic.Int64
	j, err := sqlite.Open(sqlite.Options{Dir: filepath.Join(dir, "store"), Logger: quiet, Crash: func(at string) {
		if at == point && met.Add(1) == hits {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}})
	must(err)
	ctx := context.Background()
	var wg sync.WaitGroup
	for i := range crashLogs {
		wg.Go(func() {
			id := fmt.Sprint("c", i)
			s, err := j.Conversation(ctx, id)
			if errors.Is(err, journal.ErrNotFound) {
				err = j.Append(ctx, journal.Batch{Conversation: id, Create: true, Summary: &journal.Summary{}})
			}
			must(err)
			w := journaltest.Writer{Pick: journaltest.Seeded(uint64(i) + 77)}
			for int64(len(w.Log)) < s.Head {
				w.Next()
			}
			for {
				before := int64(len(w.Log))
				events := w.Next()
				head := int64(len(w.Log))
				must(j.Append(ctx, journal.Batch{
					Conversation: id, Expected: before, Events: events, Keys: []journal.KeyValue{{Key: id + "/head", Value: fmt.Append(nil, head)}},
				}))
				say("ack", id, head)
				if w.Open == 0 {
					must(j.Compact(ctx, id, head))
				}
			}
		})
	}
	wg.Go(func() {
		for n := range 200 {
			var id string
			for round := 0; ; round++ {
				id = goneID(round, n)
				if _, err := j.Conversation(ctx, id); errors.Is(err, journal.ErrNotFound) {
					break
				}
			}
			text := strings.Repeat(marker(id), 100)
			var events []event.Event
			for seq := range 50 {
				events = append(events, event.Event{Seq: int64(seq + 1), Type: event.MessageAdd, Message: fmt.Sprint("m", seq), Body: &event.Body{
					Role: event.User, Parts: []event.Part{{Kind: event.KindText, Text: text}},
				}})
			}
			must(j.Append(ctx, journal.Batch{
				Conversation: id, Create: true, Summary: &journal.Summary{Owner: "gone", Title: text}, Events: events,
				Keys: []journal.KeyValue{{Key: id, Value: []byte(text)}},
			}))
			if n%2 == 0 {
				must(j.Compact(ctx, id, 25))
			}
			must(j.Delete(ctx, id))
			say("deleted", id, 0)
		}
	})
	wg.Go(func() {
		for n := range 1000 {
			path := filepath.Join(dir, fmt.Sprint("backup", n, ".db"))
			must(j.Backup(ctx, path))
			must(os.Remove(path))
		}
	})
	wg.Wait()
}
