//go:build unix

package killer

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/transcript"
)

// tailReader is a reader that reconnects with its cursor and its transcript.
type tailReader struct {
	cursor string
	seq    int64
	t      transcript.Transcript
	resets int
}

// catchUp reads with the Go client over HTTP until the reader has the head that the gateway announced.
func (r *tailReader) catchUp(t *testing.T, c *leat.Client) {
	t.Helper()
	target := int64(-1)
	err := c.Stream(t.Context(), "c", leat.StreamOptions{Cursor: r.cursor}, func(f *leat.Frame) error {
		switch f.Type {
		case "hello":
			var hello struct{ Head int64 }
			if err := json.Unmarshal(f.Raw, &hello); err != nil {
				return err
			}
			target = hello.Head
		case "snapshot":
			r.resets++
			r.t = transcript.Transcript{}
			r.t.Reset(f.Transcript)
			r.cursor, r.seq = f.Cursor, f.Transcript.Seq
		case "batch":
			for i := range f.Events {
				if err := r.t.Apply(&f.Events[i]); err != nil {
					return err
				}
			}
			r.cursor, r.seq = f.Cursor, f.Seq
		}
		if r.seq == target {
			return leat.ErrStop // also for a reader that has everything: nothing but the hello comes
		}
		return nil
	})
	if err != nil {
		t.Fatalf("read after %q: %v", r.cursor, err)
	}
}

// TestKillerLostTail removes the newest events from the store of a killed gateway, as a power failure does, or files that are
// lost or copied from an older backup do. New events then use the same seqs. A reader of the lost events must get a
// snapshot, and every other reader must resume.
func TestKillerLostTail(t *testing.T) {
	for _, c := range []struct {
		name, sync string
		damage     func(t *testing.T, data, older string, wal int64)
		lost       bool // whether the newest events are gone
	}{
		{"normal, log truncated", "normal", func(t *testing.T, data, _ string, wal int64) {
			if err := os.Truncate(filepath.Join(data, "leat.db-wal"), wal); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"full, log missing", "full", func(t *testing.T, data, _ string, _ int64) {
			if err := os.Remove(filepath.Join(data, "leat.db-wal")); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"folder rolled back", "full", func(t *testing.T, data, older string, _ int64) {
			if err := os.RemoveAll(data); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(older, data); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"normal, killed only", "normal", func(*testing.T, string, string, int64) {}, false},
		{"full, killed only", "full", func(*testing.T, string, string, int64) {}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			older := data + ".older"
			p := newProgram(t, data, "--agent", "demo?speed=20")
			p.env = append(p.env, "LEAT_SYNC="+c.sync)
			client := begin(t, p)
			converse(t, client, leat.CreateOptions{ID: "c"}, "count to 3")
			var early, late tailReader
			early.catchUp(t, client)
			if err := p.end(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command("cp", "-a", data, older).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			begin(t, p)
			wal, err := os.Stat(filepath.Join(data, "leat.db-wal"))
			if err != nil {
				t.Fatal(err)
			}
			ask := func(text string) {
				t.Helper()
				ack, err := client.Send(t.Context(), "c", text)
				if err != nil {
					t.Fatal(err)
				}
				awaitEnd(t, client, "c", ack.Turn)
			}
			ask("count to 5")
			late.catchUp(t, client)
			if err := p.end(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			c.damage(t, data, older, wal.Size())
			begin(t, p)
			for again := late; c.lost && again.resets < 2; {
				again.catchUp(t, client) // above the head
				if again.resets != 2 || again.seq >= late.seq {
					t.Fatalf("a reader at %d, above the head, is at %d after %d snapshots, want 2", late.seq, again.seq, again.resets)
				}
			}
			now := tailReader{}
			for now.seq <= late.seq {
				ask("What is 2 + 3?")
				now.catchUp(t, client)
			}
			early.catchUp(t, client)
			late.catchUp(t, client)
			want := map[*tailReader]int{&early: 1, &late: 1}
			if c.lost {
				want[&late] = 2
			}
			truth := (&tailReader{})
			truth.catchUp(t, client)
			for r, resets := range want {
				if r.resets != resets {
					t.Errorf("a reader got %d snapshots, want %d", r.resets, resets)
				}
				if got, want := texts(t, &r.t), texts(t, &truth.t); !bytes.Equal(got, want) {
					t.Errorf("a reader sees\n%s\nthe log has\n%s", got, want)
				}
			}
		})
	}
}

// texts returns the visible texts of a transcript, as JSON.
func texts(t *testing.T, tr *transcript.Transcript) []byte {
	t.Helper()
	type shown struct{ ID, Role, Text string }
	var all []shown
	for _, m := range tr.Messages {
		s := shown{ID: m.ID, Role: string(m.Role)}
		for _, p := range m.Parts {
			s.Text += p.Text("")
		}
		all = append(all, s)
	}
	b, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
