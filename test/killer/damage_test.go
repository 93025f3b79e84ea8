//go:build unix

package killer

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/transcript"
)

// damageChunk changes one bit in the newest chunk of a conversation, in the file of a gateway that doesn't run.
func damageChunk(t *testing.T, data, conversation string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(data, "leat.db"))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	const newest = ` WHERE (conversation, last) = (SELECT conversation, max(last) FROM (
		SELECT conversation, last FROM live UNION ALL SELECT conversation, last FROM settled)
		WHERE conversation = (SELECT n FROM conversations WHERE id = ?))`
	changed := 0
	for _, table := range []string{"live", "settled"} {
		var b []byte
		err := db.QueryRow("SELECT events FROM "+table+newest, conversation).Scan(&b)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err == nil {
			b[len(b)/2] ^= 1
			changed++
			_, err = db.Exec("UPDATE "+table+" SET events = ?"+newest, b, conversation)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if changed == 0 {
		t.Fatalf("%s has no chunk", conversation)
	}
}

// examine runs leat doctor and returns its output.
func examine(t *testing.T, p *program, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), readyLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.path, append([]string{"doctor", "--data", p.data, "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), p.env...)
	out, _ := cmd.CombinedOutput() // its exit status covers every check
	return string(out)
}

// TestKillerDamaged changes bits in a conversation whose turn was running when the gateway was killed, in an idle one, and in
// the gateway's own logs. The gateway starts and serves all other conversations; readers of the damaged ones get a specific
// error, and the log, the overview and doctor name them.
func TestKillerDamaged(t *testing.T) {
	p := newProgram(t, filepath.Join(t.TempDir(), "data"), "--agent", "demo?speed=20")
	c := begin(t, p)
	for _, id := range []string{"good", "resting", "running"} {
		converse(t, c, leat.CreateOptions{ID: id}, "count to 3")
	}
	ack, err := c.Send(t.Context(), "running", "long 2000")
	if err != nil {
		t.Fatal(err)
	}
	err = c.Follow(t.Context(), "running", func(u leat.Update) error {
		if q := u.Transcript.Turn(ack.Turn); q != nil && q.State == transcript.TurnRunning {
			return leat.ErrStop
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.end(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	damaged := []string{"resting", "running", "$audit", "$signals"}
	for _, id := range damaged {
		damageChunk(t, p.data, id) // the driver closes the file cleanly, so that doctor can look at it
	}
	said := examine(t, p)
	for _, id := range damaged {
		if !strings.Contains(said, "conversation "+id+" is damaged") {
			t.Errorf("doctor does not name %s before the start:\n%s", id, said)
		}
	}

	begin(t, p)
	awaitEnd(t, c, "good", send(t, c, "good"))
	for _, id := range []string{"resting", "running"} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		err := c.Stream(ctx, id, leat.StreamOptions{}, func(*leat.Frame) error { return nil })
		cancel()
		var refusal *leat.Error
		if !errors.As(err, &refusal) || refusal.Reason != "damaged" || refusal.Temporary() {
			t.Errorf("reading %s: %v, want the reason damaged, for good", id, err)
		}
		if _, err := c.Send(t.Context(), id, "hello"); !errors.As(err, &refusal) || refusal.Reason != "damaged" {
			t.Errorf("sending to %s: %v, want the reason damaged", id, err)
		}
	}
	if list, err := c.Conversations(t.Context()); err != nil || len(list) != 3 {
		t.Errorf("list: %d conversations, %v", len(list), err)
	}
	resp, err := http.Get(p.url() + "/api/overview")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var look struct {
		Damaged []struct {
			Conversation, Error string
			Seq                 int64
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&look); err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, d := range look.Damaged {
		told[d.Conversation] = d.Seq > 0 && d.Error != ""
	}
	doctor := examine(t, p, "--url", p.url())
	for _, id := range []string{"resting", "running", "$signals"} { // $audit is read only on request
		if !told[id] {
			t.Errorf("the overview does not list %s: %+v", id, look.Damaged)
		}
		if !strings.Contains(doctor, "conversation "+id+" is damaged") {
			t.Errorf("doctor does not name %s:\n%s", id, doctor)
		}
		if !strings.Contains(p.logs.String(), `"conversation":"`+id+`","seq":`) {
			t.Errorf("the log does not name %s", id)
		}
	}
	// The audit log lacks only the damaged chunk and accepts new entries. Damaged conversations can be deleted.
	for _, id := range []string{"resting", "running"} {
		if err := c.Delete(t.Context(), id); err != nil {
			t.Errorf("delete %s: %v", id, err)
		}
	}
	deleted := map[string]bool{}
	err = c.Audit(t.Context(), leat.AuditOptions{}, func(e *leat.AuditEntry) error {
		if e.Action == "delete" {
			deleted[e.Conversation] = true
		}
		return nil
	})
	if err != nil || !deleted["resting"] || !deleted["running"] {
		t.Errorf("the audit log has the deletes %v, %v", deleted, err)
	}
	if err := p.end(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if said := examine(t, p); strings.Contains(said, "damaged") || !strings.Contains(said, "can be read") {
		t.Errorf("doctor after the deletes:\n%s", said)
	}
}

func send(t *testing.T, c *leat.Client, id string) (turn string) {
	t.Helper()
	ack, err := c.Send(t.Context(), id, "count to 3")
	if err != nil {
		t.Fatal(err)
	}
	return ack.Turn
}
