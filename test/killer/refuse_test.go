//go:build unix

package killer

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/transcript"
)

// refused runs the program on a folder that it must refuse, and returns its output.
func refused(t *testing.T, data string) string {
	t.Helper()
	p := newProgram(t, data)
	if err := p.launch(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.exited:
	case <-time.After(readyLimit):
		t.Fatalf("leat did not exit:\n%s", p.said())
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	said := strings.TrimSpace(p.said())
	if n := strings.Count(said, "\n"); n > 0 {
		t.Errorf("%d lines, want one:\n%s", n+1, said)
	}
	if !strings.Contains(said, data) {
		t.Errorf("%q does not name the folder %s", said, data)
	}
	return said
}

func begin(t *testing.T, p *program) *leat.Client {
	t.Helper()
	if err := p.start(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, p.said())
	}
	return &leat.Client{URL: p.url()}
}

// converse creates a conversation with one answered message.
func converse(t *testing.T, c *leat.Client, o leat.CreateOptions, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), calmLimit)
	defer cancel()
	conv, err := c.Create(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	ack, err := c.Send(ctx, conv.ID, text)
	if err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, c, conv.ID, ack.Turn)
	return conv.ID
}

// awaitEnd follows until a turn has ended and returns the transcript.
func awaitEnd(t *testing.T, c *leat.Client, conversation, turn string) *transcript.Transcript {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), calmLimit)
	defer cancel()
	tr := &transcript.Transcript{}
	err := c.Follow(ctx, conversation, func(u leat.Update) error {
		if q := u.Transcript.Turn(turn); q == nil || q.Unfinished() {
			return nil
		}
		tr.Reset(u.Transcript.Snapshot(0))
		return leat.ErrStop
	})
	if err != nil {
		t.Fatalf("waiting for the end of turn %s: %v", turn, err)
	}
	return tr
}

// TestKillerSecondGateway starts a second gateway on a folder that is in use.
func TestKillerSecondGateway(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	first := newProgram(t, data)
	c := begin(t, first)
	id := converse(t, c, leat.CreateOptions{}, "count to 3")
	if said := refused(t, data); !strings.Contains(said, "in use") || !strings.Contains(said, fmt.Sprint(first.cmd.Process.Pid)) {
		t.Errorf("%q does not say that process %d uses the folder", said, first.cmd.Process.Pid)
	}
	// The first gateway is not affected.
	ack, err := c.Send(t.Context(), id, "count to 3")
	if err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, c, id, ack.Turn)
	// A killed gateway leaves its lock file, but no lock.
	if err := first.end(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	begin(t, newProgram(t, data))
}

// TestKillerForeignFile starts the program on files of other programs. It must refuse them and leave them unchanged.
func TestKillerForeignFile(t *testing.T) {
	for name, make := range map[string]func(t *testing.T, path string){
		"text": func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte("Dear diary, today I wrote no database.\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"another program's database": func(t *testing.T, path string) {
			alter(t, path, "CREATE TABLE bookmarks (url TEXT)", "INSERT INTO bookmarks VALUES ('https://example.org')")
		},
		"another program's database with its own mark": func(t *testing.T, path string) {
			alter(t, path, "PRAGMA application_id = 1234567", "PRAGMA user_version = 1", "CREATE TABLE t (x)")
		},
	} {
		t.Run(name, func(t *testing.T) {
			data := t.TempDir()
			path := filepath.Join(data, "leat.db")
			make(t, path)
			before := read(t, path)
			if said := refused(t, data); !strings.Contains(said, "not a Leat journal") {
				t.Errorf("%q does not say that the file is not Leat's", said)
			}
			if !bytes.Equal(before, read(t, path)) {
				t.Error("the file was changed")
			}
		})
	}
}

// TestKillerNewerVersion starts the program on a file of a future version.
func TestKillerNewerVersion(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	p := newProgram(t, data)
	converse(t, begin(t, p), leat.CreateOptions{}, "count to 3")
	if err := p.end(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(data, "leat.db")
	alter(t, path, "PRAGMA user_version = 999")
	before := read(t, path)
	if said := refused(t, data); !strings.Contains(said, "newer") {
		t.Errorf("%q does not say that a newer version wrote the file", said)
	}
	if !bytes.Equal(before, read(t, path)) {
		t.Error("the file was changed")
	}
}

func alter(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestKillerDeletedText deletes a conversation and searches for its words, and for the key that encrypts its text,
// in every file of the folder.
func TestKillerDeletedText(t *testing.T) {
	const secret, title = "Rumpelstilzchen-4711", "Hinterkaifeck-1922"
	data := filepath.Join(t.TempDir(), "data")
	p := newProgram(t, data, "--agent", "demo?speed=0")
	c := begin(t, p)
	other := converse(t, c, leat.CreateOptions{}, "count to 3")
	id := converse(t, c, leat.CreateOptions{Title: title}, "My name is "+secret+". What did I say?")
	for range 3 { // compacted repeatedly, so that the text has moved about
		ack, err := c.Send(t.Context(), id, "What did I say? Not "+secret+", I hope.")
		if err != nil {
			t.Fatal(err)
		}
		awaitEnd(t, c, id, ack.Turn)
	}
	key := keyOf(t, data, id)
	if in := holding(t, data, key); len(in) == 0 {
		t.Fatal("the key is in no file before the delete, so the test proves nothing")
	}
	if err := c.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	look := func(when string) {
		for what, bytes := range map[string][]byte{"the text": []byte(secret), "the title": []byte(title), "the key of its text": key} {
			if in := holding(t, data, bytes); len(in) > 0 {
				t.Errorf("%s: %s is still in %v", when, what, in)
			}
		}
	}
	look("after the delete")
	ack, err := c.Send(t.Context(), other, "count to 3")
	if err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, c, other, ack.Turn)
	if err := p.end(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	look("after the gateway has stopped")
	c = begin(t, newProgram(t, data))
	var refusal *leat.Error
	if _, err := c.Conversation(t.Context(), id); !errors.As(err, &refusal) || refusal.Status != 404 {
		t.Errorf("the deleted conversation: %v, want 404", err)
	}
}

// keyOf reads the key that encrypts a conversation's text, while the gateway runs.
func keyOf(t *testing.T, data, id string) (key []byte) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(data, "leat.db")+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const query = "SELECT key FROM secrets JOIN conversations USING (n) WHERE id = ?"
	if err := db.QueryRow(query, id).Scan(&key); err != nil {
		t.Fatal(err)
	}
	if len(key) < 16 {
		t.Fatalf("a key of %d bytes", len(key))
	}
	return key
}

// holding lists the files of a folder that contain the bytes.
func holding(t *testing.T, dir string, what []byte) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the gateway has just removed it
		}
		if bytes.Contains(b, what) {
			files = append(files, d.Name())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
