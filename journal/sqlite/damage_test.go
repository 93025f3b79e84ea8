package sqlite

import (
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/journal"
)

// said is a message that is easy to damage: a changed byte of its text leaves good JSON.
func said(seq int64, text string) event.Event {
	return event.Event{Seq: seq, Type: event.MessageAdd, Message: "m" + text, Body: &event.Body{
		Role: event.User, Parts: []event.Part{{Kind: event.KindText, Text: text}},
	}}
}

// writeLogs makes a folder with the logs c and d, of four messages each, of which the first two are settled.
func writeLogs(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	j := openKept(t, dir)
	for _, id := range []string{"c", "d"} {
		create1(t, j, id)
		for n := range int64(4) {
			b := journal.Batch{Conversation: id, Expected: n, Events: []event.Event{said(n+1, "abcd"[n:n+1]+strings.Repeat("x", 50))}}
			b.Put = []journal.KeyValue{{Key: id + "/key", Value: []byte("value")}}
			if err := j.Append(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Compact(t.Context(), id, 2); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// edit changes the file of a folder that nobody uses.
func edit(t *testing.T, dir string, f func(c *conn) error) {
	t.Helper()
	c, err := dial(filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f(c), c.close()); err != nil {
		t.Fatal(err)
	}
}

// flip changes one bit in the middle of a blob.
func flip(t *testing.T, dir, table, column, where string) {
	t.Helper()
	edit(t, dir, func(c *conn) error {
		r, err := c.one("SELECT " + column + " FROM " + table + " WHERE " + where)
		if err != nil {
			return err
		}
		b := r.blob(0)
		b[len(b)/2] ^= 1
		n, err := c.change(t.Context(), "UPDATE "+table+" SET "+column+" = ? WHERE "+where, b)
		if err == nil && n != 1 {
			t.Fatalf("%d rows were changed", n)
		}
		return err
	})
}

const ofC = "conversation = (SELECT n FROM conversations WHERE id = 'c')"

// A changed bit is an error that names the conversation and the seq, and never a text that nobody wrote.
func TestFlippedBit(t *testing.T) {
	read := func(j *Journal) error {
		_, err := j.Read(t.Context(), "c", 0, 0)
		return err
	}
	for name, c := range map[string]struct {
		table, column, where string
		seq                  int64
		use                  func(j *Journal) error
	}{
		"live":         {"live", "events", "first = 4 AND " + ofC, 4, read},
		"settled":      {"settled", "events", ofC, 1, read},
		"to be merged": {"live", "events", "first = 3 AND " + ofC, 3, func(j *Journal) error { return j.Compact(t.Context(), "c", 4) }},
		"key": {"kv", "value", "key = 'c/key'", 0, func(j *Journal) error {
			_, err := j.Get(t.Context(), "c/key")
			return err
		}},
		"summary": {"conversations", "summary", "id = 'c'", 0, func(j *Journal) error {
			_, err := j.Conversation(t.Context(), "c")
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeLogs(t)
			flip(t, dir, c.table, c.column, c.where)
			j := start(t, Options{Dir: dir})
			err := c.use(j)
			var damage *journal.DamageError
			if !errors.Is(err, journal.ErrCorrupt) || !errors.As(err, &damage) || damage.Conversation != "c" || damage.Seq != c.seq || !strings.Contains(err.Error(), "conversation c is damaged") {
				t.Errorf("error %v (%+v), want one about conversation c, seq %d", err, damage, c.seq)
			}
			if r, err := j.Read(t.Context(), "d", 0, 0); err != nil || len(r.Events) != 4 {
				t.Errorf("the other conversation: %d events, %v", len(r.Events), err)
			}
		})
	}
}

// Rows that changed places are authentic texts, but not of these places.
func TestSwappedRows(t *testing.T) {
	for name, query := range map[string]string{
		"in the log":       "SELECT a.row, b.row FROM live a, live b WHERE a.first = 3 AND b.first = 4 AND a.conversation = b.conversation AND a." + ofC,
		"between two logs": "SELECT a.row, b.row FROM live a, live b WHERE a.first = 3 AND b.first = 3 AND a.conversation < b.conversation",
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeLogs(t)
			edit(t, dir, func(c *conn) error {
				r, err := c.one(query)
				if err != nil {
					return err
				}
				return errors.Join(
					c.exec("CREATE TEMP TABLE was AS SELECT row, events FROM live"),
					c.exec("UPDATE live SET events = (SELECT events FROM was WHERE was.row = ?) WHERE row = ?", r.int(1), r.int(0)),
					c.exec("UPDATE live SET events = (SELECT events FROM was WHERE was.row = ?) WHERE row = ?", r.int(0), r.int(1)),
				)
			})
			j := start(t, Options{Dir: dir})
			var damage *journal.DamageError
			if _, err := j.Read(t.Context(), "c", 0, 0); !errors.As(err, &damage) || damage.Seq != 3 {
				t.Errorf("error %v, want damage at seq 3", err)
			}
		})
	}
}

// A chunk that was damaged before the migration is not made authentic by it; all others are.
func TestMigrateDamaged(t *testing.T) {
	dir := storeFrom(t, "v3.db")
	edit(t, dir, func(c *conn) error {
		return c.exec("UPDATE live SET events = zeroblob(80) WHERE row = (SELECT max(row) FROM live WHERE " + ofC + ")")
	})
	j, err := Open(Options{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	n := head(t, j, "c")
	var damage *journal.DamageError
	if _, err := j.Read(t.Context(), "c", n-1, 0); !errors.As(err, &damage) || damage.Conversation != "c" {
		t.Errorf("read of the damaged chunk: %v", err)
	}
	if n := head(t, j, "$signals"); n != 1 {
		t.Errorf("$signals has head %d", n)
	}
}
