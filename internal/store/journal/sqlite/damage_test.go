package sqlite

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
)

// said returns a message that is easy to damage: its JSON stays valid if a byte of its text changes.
func said(seq int64, text string) event.Event {
	return event.Event{Seq: seq, Type: event.MessageAdd, Message: "m" + text, Body: &event.Body{
		Role: event.User, Parts: []event.Part{{Kind: event.KindText, Text: text}},
	}}
}

// writeLogs creates a folder with the logs c and d of four messages each. The first two are compacted.
func writeLogs(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	j := openKept(t, dir)
	for _, id := range []string{"c", "d"} {
		create1(t, j, id)
		for n := range int64(4) {
			b := journal.Batch{Conversation: id, Expected: n, Events: []event.Event{said(n+1, "abcd"[n:n+1]+strings.Repeat("x", 50))}}
			b.Keys = []journal.KeyValue{{Key: id + "/key", Value: []byte("value")}}
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

// edit changes the database file of a folder that isn't in use.
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
		r, err := c.queryRow("SELECT " + column + " FROM " + table + " WHERE " + where)
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

// A changed bit causes an error with the conversation and the seq, and never a wrong text.
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
		"compacted":    {"settled", "events", ofC, 1, read},
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

// Rows that are swapped contain authentic texts, but not for their places, so reading them fails.
func TestSwappedRows(t *testing.T) {
	for name, query := range map[string]string{
		"in the log":       "SELECT a.row, b.row FROM live a, live b WHERE a.first = 3 AND b.first = 4 AND a.conversation = b.conversation AND a." + ofC,
		"between two logs": "SELECT a.row, b.row FROM live a, live b WHERE a.first = 3 AND b.first = 3 AND a.conversation < b.conversation",
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeLogs(t)
			edit(t, dir, func(c *conn) error {
				r, err := c.queryRow(query)
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

// The migration doesn't authenticate a chunk that was already damaged. It authenticates all others.
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
	var damage *journal.DamageError
	if _, err := j.Read(t.Context(), "c", 99, 0); !errors.As(err, &damage) || damage.Conversation != "c" {
		t.Errorf("read of the damaged chunk: %v", err)
	}
	if n := head(t, j, "$signals"); n != 1 {
		t.Errorf("$signals has head %d", n)
	}
}

// Damage of any kind is quarantined: the journal opens and serves the other conversations.
func TestQuarantine(t *testing.T) {
	for name, c := range map[string]struct {
		damage  func(t *testing.T, dir string)
		summary bool // whether it is the summary that can't be read
	}{
		"live chunk":      {func(t *testing.T, dir string) { flip(t, dir, "live", "events", "first = 4 AND "+ofC) }, false},
		"compacted chunk": {func(t *testing.T, dir string) { flip(t, dir, "settled", "events", ofC) }, false},
		"hole": {func(t *testing.T, dir string) {
			edit(t, dir, func(c *conn) error { return c.exec("DELETE FROM live WHERE first = 3 AND " + ofC) })
		}, false},
		"overlap": {func(t *testing.T, dir string) {
			edit(t, dir, func(c *conn) error { return c.exec("UPDATE live SET first = 3 WHERE first = 4 AND " + ofC) })
		}, false},
		"lost key": {func(t *testing.T, dir string) {
			edit(t, dir, func(c *conn) error {
				return c.exec("UPDATE secrets SET key = zeroblob(16) WHERE n = (SELECT n FROM conversations WHERE id = 'c')")
			})
		}, true},
		"terms": {func(t *testing.T, dir string) {
			edit(t, dir, func(c *conn) error { return c.exec("UPDATE conversations SET terms = 'x' WHERE id = 'c'") })
		}, false},
		"summary": {func(t *testing.T, dir string) { flip(t, dir, "conversations", "summary", "id = 'c'") }, true},
		"key":     {func(t *testing.T, dir string) { flip(t, dir, "kv", "value", "key = 'c/key'") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeLogs(t)
			c.damage(t, dir)
			if found, err := Verify(t.Context(), dir); err != nil || len(found) != 1 || found[0].Conversation != "c" {
				t.Errorf("verify: %v, %v", found, err)
			}
			var said strings.Builder
			j, err := Open(Options{Dir: dir, Logger: slog.New(slog.NewTextHandler(&said, nil))})
			if err != nil {
				t.Fatal(err)
			}
			defer j.Close()
			list, err := j.Conversations(t.Context(), journal.Query{})
			if err != nil || len(list) != 2 {
				t.Fatalf("list: %v, %v", list, err)
			}
			if keys, err := j.Keys(t.Context(), ""); err != nil || !slices.ContainsFunc(keys, func(kv journal.KeyValue) bool { return kv.Key == "d/key" }) {
				t.Errorf("keys: %v, %v", keys, err)
			}
			ops := map[string]func() error{
				"append":  func() error { return j.Append(t.Context(), record("c", 4)) },
				"compact": func() error { return j.Compact(t.Context(), "c", 4) },
				"trim":    func() error { return j.Trim(t.Context(), "c", 1) },
			}
			_, err = j.Read(t.Context(), "c", 0, 0)
			if name == "summary" {
				err = ops["append"]() // it was found by the list
			}
			if !errors.Is(err, journal.ErrCorrupt) {
				t.Errorf("read: %v", err)
			}
			for op, do := range ops {
				var damage *journal.DamageError
				if err := do(); !errors.As(err, &damage) || damage.Conversation != "c" {
					t.Errorf("%s: %v", op, err)
				}
			}
			if _, err := j.Conversation(t.Context(), "c"); errors.Is(err, journal.ErrCorrupt) != c.summary {
				t.Errorf("summary: %v", err)
			}
			if found := j.Damaged(); len(found) != 1 || found[0].Conversation != "c" || strings.Count(said.String(), "level=ERROR") != 1 || !strings.Contains(said.String(), "conversation=c ") {
				t.Errorf("damaged: %v; the log is\n%s", found, said.String())
			}
			r, err := j.Read(t.Context(), "d", 0, 0)
			if err == nil {
				err = j.Append(t.Context(), record("d", 4))
			}
			if err != nil || len(r.Events) != 4 {
				t.Errorf("the other conversation: %d events, %v", len(r.Events), err)
			}
			if err := j.Delete(t.Context(), "c"); err != nil {
				t.Errorf("delete: %v", err)
			}
			if found := j.Damaged(); len(found) != 0 {
				t.Errorf("damaged after the delete: %v", found)
			}
			n, err := j.queryNumber(t, "SELECT count(*) FROM live WHERE conversation NOT IN (SELECT n FROM conversations)")
			if err != nil || n != 0 {
				t.Errorf("%d rows of the deleted conversation remain, %v", n, err)
			}
		})
	}
}

func (j *Journal) queryNumber(t *testing.T, query string) (n int64, err error) {
	err = j.readTx(t.Context(), func(c *conn) (err error) {
		n, err = c.number(query)
		return err
	})
	return n, err
}

// Omitted keys don't make a page of keys look like the last one.
func TestDamagedKeyInPage(t *testing.T) {
	dir := writeLogs(t)
	flip(t, dir, "kv", "value", "key = 'c/key'")
	j := start(t, Options{Dir: dir})
	keys, err := j.KeysAfter(t.Context(), "", "", 1)
	if err != nil || len(keys) != 1 || keys[0].Key != "d/key" {
		t.Errorf("the first key: %v, %v", keys, err)
	}
	if keys, err = j.KeysAfter(t.Context(), "", "d/key", 1); err != nil || len(keys) != 0 {
		t.Errorf("after the last: %v, %v", keys, err)
	}
}

// One of the gateway's own logs with a damaged chunk can be read past the chunk and written. A delete, which must search it,
// removes the chunk.
func TestDamagedSystemLog(t *testing.T) {
	dir := writeLogs(t)
	j := openKept(t, dir)
	create1(t, j, "$own")
	for range 3 {
		appendRecord(t, j, "$own")
	}
	if err := j.Append(t.Context(), journal.Batch{Conversation: "$own", Expected: 3, Keys: []journal.KeyValue{{Key: "own/1", Value: []byte("x")}, {Key: "own/2", Value: []byte("x")}}}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	flip(t, dir, "live", "events", "first = 2 AND conversation = (SELECT n FROM conversations WHERE id = '$own')")
	flip(t, dir, "kv", "value", "key = 'own/1'")
	j = start(t, Options{Dir: dir})
	for _, limit := range []int{0, 1} {
		var seqs []int64
		for after := int64(0); ; {
			r, err := j.Read(t.Context(), "$own", after, limit)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range r.Events {
				after = e.Seq
				seqs = append(seqs, e.Seq)
			}
			if !r.HasMore {
				break
			}
		}
		if !slices.Equal(seqs, []int64{1, 3}) {
			t.Errorf("limit %d: records %v, want 1 and 3", limit, seqs)
		}
	}
	if keys, err := j.Keys(t.Context(), "own/"); err != nil || len(keys) != 2 || keys[0].Value != nil || string(keys[1].Value) != "x" {
		t.Errorf("keys: %v, %v", keys, err)
	}
	appendRecord(t, j, "$own")
	if found := j.Damaged(); len(found) != 1 || found[0].Conversation != "$own" || found[0].Seq != 2 {
		t.Errorf("damaged: %v", found)
	}
	if err := j.Delete(t.Context(), "d"); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	flip(t, dir, "kv", "value", "key = 'own/1'") // as it was
	if found, err := Verify(t.Context(), dir); err != nil || len(found) != 0 {
		t.Errorf("after a delete %v is damaged, %v", found, err)
	}
}

// The log of a user's stream is refused when it is damaged, since its records don't stand alone. A delete of a conversation neither reads nor
// changes it, even if its records name the conversation.
func TestDamagedStream(t *testing.T) {
	dir := writeLogs(t)
	j := openKept(t, dir)
	id := journal.StreamPrefix + "x"
	create1(t, j, id)
	for n := range int64(3) {
		b := record(id, n)
		b.Events[0].Body.Conversation, b.Events[0].Body.Data = "d", []byte(`"data"`)
		if err := j.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Delete(t.Context(), "d"); err != nil {
		t.Fatal(err)
	}
	r, err := j.Read(t.Context(), id, 0, 0)
	if err != nil || len(r.Events) != 3 || string(r.Events[0].Get().Data) != `"data"` {
		t.Errorf("after a delete: %+v, %v", r.Events, err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	flip(t, dir, "live", "events", "first = 2 AND conversation = (SELECT n FROM conversations WHERE id = '"+id+"')")
	j = start(t, Options{Dir: dir})
	if _, err := j.Read(t.Context(), id, 0, 0); !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("a damaged stream: %v", err)
	}
	if err := j.Delete(t.Context(), "c"); err != nil {
		t.Errorf("delete a conversation meanwhile: %v", err)
	}
	if err := j.Delete(t.Context(), id); err != nil {
		t.Errorf("delete the stream: %v", err)
	}
}

// SQLite's errors about the file itself are extended by the file's name and the next step.
func TestMalformed(t *testing.T) {
	dir := writeLogs(t)
	path := filepath.Join(dir, fileName)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	var root int64
	edit(t, dir, func(c *conn) error {
		var err error
		root, err = c.number("SELECT rootpage FROM sqlite_schema WHERE name = 'live'")
		return err
	})
	if _, err = f.WriteAt(bytes.Repeat([]byte{0xff}, 100), (root-1)*pageSize); err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	j, err := Open(Options{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		j.Close()
	}
	for _, want := range []string{"malformed", path, "leat restore"} {
		if !errors.Is(err, journal.ErrCorrupt) || !strings.Contains(err.Error(), want) {
			t.Errorf("open: %v, want %q", err, want)
		}
	}
	if _, err := Verify(t.Context(), dir); !errors.Is(err, journal.ErrCorrupt) || !strings.Contains(err.Error(), "leat restore") {
		t.Errorf("verify: %v", err)
	}
}
