package sqlite_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/sqlite"
)

// TestDeleteLeavesNothing deletes conversations of all sizes while others are written, and searches every byte of every file
// for their text: texts, notes, titles, metadata, keys, traces, and signals about them.
func TestDeleteLeavesNothing(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			dir := t.TempDir()
			j := open(t, sqlite.Options{Dir: dir, Logger: quiet, Sync: sqlite.Normal})
			defer j.Close()
			heads := map[string]int64{}
			add := func(id string, events ...event.Event) {
				t.Helper()
				b := journal.Batch{Conversation: id, Expected: heads[id], Events: events}
				for i := range events {
					heads[id]++
					events[i].Seq = heads[id]
				}
				if !strings.HasPrefix(id, "$") {
					b.Keys = []journal.KeyValue{
						{Key: fmt.Sprint(id, "/", rnd.IntN(5)), Value: []byte(strings.Repeat(marker(id), 1+rnd.IntN(40)))},
						{Key: id + "/same", Value: []byte(strings.Repeat(marker(id), 1+rnd.IntN(400)))},
					}
					b.Summary = &journal.Summary{Title: marker(id) + "title", Metadata: map[string]json.RawMessage{"k": json.RawMessage(`"` + marker(id) + `"`)}}
				}
				if err := j.Append(t.Context(), b); err != nil {
					t.Fatal(err)
				}
			}
			var ids []string
			for i := range 40 {
				ids = append(ids, fmt.Sprintf("c%02d", i))
			}
			for _, id := range append([]string{"$signals"}, ids...) {
				if err := j.Append(t.Context(), journal.Batch{Conversation: id, Create: true, Summary: &journal.Summary{Title: marker(id)}}); err != nil {
					t.Fatal(err)
				}
			}
			turn := func(id string) {
				text := func() string { return strings.Repeat(marker(id), 1+rnd.IntN(1<<rnd.IntN(11))) }
				tn := fmt.Sprint(id, "t", heads[id])
				m := fmt.Sprint(id, "m", heads[id])
				add(id, event.Event{Turn: tn, Type: event.TurnStart}, event.Event{Turn: tn, Type: event.MessageStart, Message: m, Body: &event.Body{Role: event.Assistant}},
					event.Event{Turn: tn, Type: event.PartStart, Message: m, Part: "p", Body: &event.Body{Kind: event.KindStatus}})
				for range 1 + rnd.IntN(6) {
					add(id, event.Event{Turn: tn, Type: event.PartReplace, Message: m, Part: "p", Text: text(), Note: marker(id) + "note"})
				}
				add(id, event.Event{Turn: tn, Type: event.TurnEnd, Body: &event.Body{Outcome: event.Completed}})
				add("$signals", event.Event{Type: event.Record, Body: &event.Body{RecordKind: "agent_event", Conversation: id, Data: json.RawMessage(`{"text":"` + text() + `"}`)}})
				if rnd.IntN(3) > 0 {
					if err := j.Compact(t.Context(), id, heads[id]); err != nil {
						t.Fatal(err)
					}
				}
				if rnd.IntN(20) == 0 {
					if err := j.Compact(t.Context(), "$signals", heads["$signals"]); err != nil {
						t.Fatal(err)
					}
				}
				if rnd.IntN(30) == 0 {
					if err := j.Trim(t.Context(), id, heads[id]/2); err != nil {
						t.Fatal(err)
					}
				}
			}
			for len(ids) > 22 {
				for range 12 {
					turn(ids[rnd.IntN(len(ids))])
				}
				i := rnd.IntN(len(ids))
				id := ids[i]
				n, key := inside(t, dir, id)
				if grep(t, dir, key) == "" {
					t.Fatalf("the key of %s is not in any file before the delete: the search is wrong", id)
				}
				if err := j.Delete(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				for what, text := range map[string]string{"text": marker(id), "key": key} {
					if found := grep(t, dir, text); found != "" {
						t.Fatalf("deleted conversation %s: its %s is in %s", id, what, found)
					}
				}
				if left := rows(t, dir, n); left != "" {
					t.Fatalf("deleted conversation %s has rows in %s", id, left)
				}
				ids = append(ids[:i], ids[i+1:]...)
			}
		})
	}
}

// inside returns the number and the key of a conversation as stored in the file.
func inside(t testing.TB, dir, id string) (n int64, key string) {
	t.Helper()
	var b []byte
	query(t, dir, func(db *sql.DB) error {
		return db.QueryRow("SELECT n, key FROM conversations JOIN secrets USING (n) WHERE id = ?", id).Scan(&n, &b)
	})
	return n, string(b)
}

// rows returns a table that still has rows of a conversation, or "".
func rows(t testing.TB, dir string, n int64) (table string) {
	t.Helper()
	query(t, dir, func(db *sql.DB) error {
		for _, name := range []string{"live", "settled", "traces", "kv"} {
			var count int
			if err := db.QueryRow("SELECT count(*) FROM "+name+" WHERE conversation = ?", n).Scan(&count); err != nil {
				return err
			}
			if count > 0 {
				table = name
			}
		}
		return nil
	})
	return table
}

// query reads the file on a connection of the test.
func query(t testing.TB, dir string, f func(*sql.DB) error) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "leat.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f(db), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestDeleteTakesMigrationCopy checks that a delete removes the copy from before a migration.
func TestDeleteTakesMigrationCopy(t *testing.T) {
	dir := t.TempDir()
	j := open(t, sqlite.Options{Dir: dir, Logger: quiet})
	defer j.Close()
	file := filepath.Join(dir, "leat.db.v1.copy")
	if err := os.WriteFile(file, []byte("old text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(t.Context(), journal.Batch{Conversation: "c", Create: true, Summary: &journal.Summary{}}); err != nil {
		t.Fatal(err)
	}
	if err := j.Delete(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the copy still exists: %v", err)
	}
}

// marker is part of every text of a conversation to delete.
func marker(id string) string { return "marker-of-" + id + "-" }

// grep returns a file under dir that contains text, or "".
func grep(t testing.TB, dir, text string) (found string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(text)) {
			found = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
