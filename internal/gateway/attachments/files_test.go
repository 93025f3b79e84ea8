package attachments_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/files"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

var picture = append([]byte("\x89PNG\r\n\x1a\n"), "the picture"...)

// storedIn counts the files in a folder.
func storedIn(t *testing.T, dir string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (h *harness) put(p gateway.Principal, conv, name string, content []byte) event.Media {
	h.t.Helper()
	m, err := h.PutFile(h.t.Context(), p, conv, agent.File{Name: name}, bytes.NewReader(content))
	if err != nil {
		h.t.Fatal(err)
	}
	return m
}

func idOf(m event.Media) string { return m.URL[strings.LastIndex(m.URL, "/")+1:] }

func showing(m ...event.Media) gateway.Command {
	c := gateway.Command{Type: gateway.CommandInject, Message: &gateway.CommandMessage{Text: "look"}}
	for i := range m {
		c.Message.Parts = append(c.Message.Parts, event.Part{Kind: event.KindMedia, Media: &m[i]})
	}
	return c
}

// A file that a message shows can be read by those who may read the conversation, and is deleted with the message.
func TestFileOfAMessage(t *testing.T) {
	dir := t.TempDir()
	h := newHarness(t, dir, options{})
	defer h.close()
	conv := h.create(alice)
	m := h.put(alice, conv, "../holiday.png", picture)
	if m.MIME != "image/png" || m.Name != "holiday.png" || m.Size != int64(len(picture)) || m.URL != "/api/conversations/"+conv+"/files/"+idOf(m) {
		t.Errorf("media = %+v", m)
	}
	first := h.do(conv, gateway.Command{Type: gateway.CommandInject, Message: &gateway.CommandMessage{Text: "before"}})
	h.do(conv, showing(m))
	f, got, err := h.OpenFile(t.Context(), alice, conv, idOf(m))
	if err != nil || got != m {
		t.Fatalf("OpenFile = %+v, %v", got, err)
	}
	b, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil || !bytes.Equal(b, picture) {
		t.Errorf("content %q, %v", b, err)
	}
	for name, p := range map[string]gateway.Principal{"another": bob, "of another tenant": {Tenant: "t2", Subject: "alice"}, "nobody": {}} {
		if _, _, err := h.OpenFile(t.Context(), p, conv, idOf(m)); !errors.Is(err, gateway.ErrNotFound) && !errors.Is(err, gateway.ErrForbidden) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := h.PutFile(t.Context(), p, conv, agent.File{}, bytes.NewReader(picture)); !errors.Is(err, gateway.ErrNotFound) && !errors.Is(err, gateway.ErrForbidden) {
			t.Errorf("%s puts a file: %v", name, err)
		}
	}
	if _, _, err := h.OpenFile(t.Context(), admin, h.create(alice), idOf(m)); !errors.Is(err, gateway.ErrNotFound) {
		t.Errorf("file of another conversation: %v", err)
	}
	unknown := m
	unknown.URL = strings.Replace(m.URL, idOf(m), strings.Repeat("0", files.IDLength), 1)
	h.refused(conv, showing(unknown), gateway.ReasonUnknown)

	h.do(conv, gateway.Command{Type: gateway.CommandTruncate, After: first.Message})
	if _, _, err := h.OpenFile(t.Context(), alice, conv, idOf(m)); !errors.Is(err, gateway.ErrNotFound) || storedIn(t, dir) != 0 {
		t.Errorf("after a truncate: %v, %d files", err, storedIn(t, dir))
	}
}

// A truncate deletes only the files that no remaining message shows.
func TestTruncateKeepsShownFiles(t *testing.T) {
	dir := t.TempDir()
	h := newHarness(t, dir, options{})
	defer h.close()
	conv := h.create(alice)
	m, other := h.put(alice, conv, "a.png", picture), h.put(alice, conv, "b.txt", []byte("words"))
	first := h.do(conv, showing(m))
	h.do(conv, showing(m, other))
	h.do(conv, gateway.Command{Type: gateway.CommandTruncate, After: first.Message})
	if storedIn(t, dir) != 1 {
		t.Errorf("%d files", storedIn(t, dir))
	}
	f, _, err := h.OpenFile(t.Context(), alice, conv, idOf(m))
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := h.Do(t.Context(), alice, conv, gateway.Command{Type: gateway.CommandDelete}); err != nil {
		t.Fatal(err)
	}
	if storedIn(t, dir) != 0 {
		t.Errorf("%d files after the delete", storedIn(t, dir))
	}
}

// A truncate that keeps the files lets a message be sent again with them. Files that are not sent again expire.
func TestTruncateForResend(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, dir, options{})
		defer h.close()
		conv := h.create(alice)
		m, other := h.put(alice, conv, "a.png", picture), h.put(alice, conv, "b.txt", []byte("words"))
		h.do(conv, showing(m, other))
		h.do(conv, gateway.Command{Type: gateway.CommandTruncate, KeepFiles: true})
		h.do(conv, showing(m))
		age(t, dir)
		time.Sleep(49 * time.Hour)
		synctest.Wait()
		if _, _, err := h.OpenFile(t.Context(), alice, conv, idOf(other)); !errors.Is(err, gateway.ErrNotFound) || storedIn(t, dir) != 1 {
			t.Errorf("%d files, %v", storedIn(t, dir), err)
		}
		f, _, err := h.OpenFile(t.Context(), alice, conv, idOf(m))
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	})
}

// A data URL whose base64 is invalid is the client's mistake. Nothing of its message is stored.
func TestInvalidDataURLs(t *testing.T) {
	h := newHarness(t, t.TempDir(), options{})
	defer h.close()
	conv := h.create(alice)
	file := func(data string) gateway.Command { return showing(event.Media{URL: "data:text/plain;base64," + data}) }
	for _, data := range []string{"a", "aGVs*G8=", "aGVsbG8==", "aGVsb", "===="} {
		h.refused(conv, file(data), gateway.ReasonInvalid)
	}
	h.do(conv, file("aGVsbG8")) // some clients omit the padding
	if n := len(h.view(conv).Messages); n != 1 {
		t.Errorf("%d messages, want the valid one", n)
	}
}

// The bytes of a data URL are stored as a file, whether a user or an agent sends it. A repeated command stores no second file.
func TestDataURLs(t *testing.T) {
	dir := t.TempDir()
	url := "data:image/png;base64," + base64.StdEncoding.EncodeToString(picture)
	var heard event.Media
	var sees []byte
	a := agentFunc(func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
		heard = *in.Message.Parts[0].Media
		f, err := out.OpenFile(ctx, heard)
		if err != nil {
			return err
		}
		defer f.Close()
		if sees, err = io.ReadAll(f); err != nil {
			return err
		}
		in, err = out.Inline(ctx, in)
		if err != nil {
			return err
		}
		if got := in.Message.Parts[0].Media.URL; got != url {
			return fmt.Errorf("inline: %s", got)
		}
		return out.Media(event.Media{URL: "data:,some%20words", Name: "n.txt"})
	})
	h := newHarness(t, dir, options{agent: a})
	defer h.close()
	conv := h.create(alice)
	c := gateway.Command{Type: gateway.CommandSend, Key: "k", Message: &gateway.CommandMessage{
		Parts: []event.Part{{Kind: event.KindMedia, Media: &event.Media{URL: url, Name: "p.png"}}},
	}}
	ack, err := h.Do(t.Context(), alice, conv, c)
	if err != nil {
		t.Fatal(err)
	}
	h.completed(conv, ack.Turn)
	if again, err := h.Do(t.Context(), alice, conv, c); err != nil || !again.Repeated || again.Message != ack.Message {
		t.Errorf("repeated command: %+v, %v", again, err)
	}
	if heard.Name != "p.png" || heard.MIME != "image/png" || !strings.HasPrefix(heard.URL, "/api/") || !bytes.Equal(sees, picture) {
		t.Errorf("the agent got %+v and read %q", heard, sees)
	}
	said := h.view(conv).Messages[1].Parts[0].Media
	if said == nil || said.MIME != "text/plain" || said.Size != 10 || !strings.HasPrefix(said.URL, "/api/") {
		t.Errorf("media of the agent: %+v", said)
	}
	if n := storedIn(t, dir); n != 2 {
		t.Errorf("%d files", n)
	}
}

// An agent finds a file that it stored by its origin. A file above the limit is rejected.
func TestFilesOfAnAgent(t *testing.T) {
	a := agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
		if _, ok, err := out.FindFile(ctx, "there"); ok || err != nil {
			return fmt.Errorf("found: %v, %w", ok, err)
		}
		m, err := out.PutFile(ctx, agent.File{Name: "p.png", Origin: "there"}, bytes.NewReader(picture))
		if err != nil {
			return err
		}
		if found, ok, err := out.FindFile(ctx, "there"); !ok || err != nil || found != m {
			return fmt.Errorf("found %+v, %v, %w", found, ok, err)
		}
		if _, err := out.OpenFile(ctx, event.Media{URL: "https://example.com/x.png"}); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("open media of another server: %w", err)
		}
		if err := out.Media(m); err != nil {
			return err
		}
		large := bytes.Repeat([]byte("x"), 101)
		if _, err := out.PutFile(ctx, agent.File{}, bytes.NewReader(large)); err == nil {
			return errors.New("a file beyond the limit was taken")
		}
		return out.Media(event.Media{URL: "data:text/plain;base64," + base64.StdEncoding.EncodeToString(large), Name: "large.txt"})
	})
	h := newHarness(t, t.TempDir(), options{agent: a, maxFile: 100})
	defer h.close()
	conv := h.create(alice)
	ack := h.do(conv, gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: "go"}})
	h.completed(conv, ack.Turn)
	parts := h.view(conv).Messages[1].Parts
	if len(parts) != 2 || parts[1].Media.URL != "" || parts[1].Media.Name != "large.txt" || parts[1].State != event.PartFailed || parts[1].Error == nil {
		t.Errorf("parts: %+v", parts)
	}
}

// Files count toward their owner's limit, also after a restart. Bytes without a record are removed by the sweep.
func TestFilesCount(t *testing.T) {
	dir, j := t.TempDir(), memory.New()
	limit := func(c *gateway.Config) { c.User = quota.Limits{Bytes: 10_000} }
	h := newHarness(t, dir, options{journal: noClose{j}, config: limit})
	conv := h.create(alice)
	block := bytes.Repeat([]byte("x"), 6000)
	h.do(conv, showing(h.put(alice, conv, "a", block)))
	full := func(h *harness) {
		t.Helper()
		_, err := h.PutFile(t.Context(), alice, conv, agent.File{}, bytes.NewReader(append(block, 'y')))
		var r *gateway.Rejection
		if !errors.As(err, &r) || r.Reason != gateway.ReasonQuota || storedIn(t, dir) != 1 {
			t.Errorf("beyond the limit: %v, %d files", err, storedIn(t, dir))
		}
	}
	full(h)
	h.put(alice, conv, "the same", block) // costs nothing
	h.close()

	d, err := files.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Create(conv, strings.NewReader("bytes without a record"), 100); err != nil {
		t.Fatal(err)
	}
	h = newHarness(t, dir, options{journal: noClose{j}, config: limit})
	defer h.close()
	full(h)
	if _, err := h.Do(t.Context(), alice, conv, gateway.Command{Type: gateway.CommandDelete}); err != nil {
		t.Fatal(err)
	}
	other := h.create(alice)
	h.put(alice, other, "b", block)
}

// noClose is a journal that outlives a gateway.
type noClose struct{ journal.Journal }

func (noClose) Close() error { return nil }

// A file that no message shows is removed after a day.
func TestUploadsExpire(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, dir, options{})
		defer h.close()
		conv := h.create(alice)
		kept, left := h.put(alice, conv, "kept", []byte("kept")), h.put(alice, conv, "left", []byte("left"))
		h.do(conv, showing(kept))
		h.put(alice, conv, "kept", []byte("kept")) // brought in again, it stays kept
		age(t, dir)
		time.Sleep(49 * time.Hour)
		synctest.Wait()
		f, _, err := h.OpenFile(t.Context(), alice, conv, idOf(kept))
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if _, _, err := h.OpenFile(t.Context(), alice, conv, idOf(left)); !errors.Is(err, gateway.ErrNotFound) {
			t.Errorf("file after a day: %v", err)
		}
		h.refused(conv, showing(left), gateway.ReasonUnknown)
		if n := storedIn(t, dir); n != 1 {
			t.Errorf("%d files", n)
		}
	})
}

// age sets the times of files to that of the test's clock, because the file system uses the real one.
func age(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			err = os.Chtimes(path, time.Now(), time.Now())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// If the record of a file can't be committed, its bytes are removed.
func TestFileWithoutRecord(t *testing.T) {
	dir := t.TempDir()
	h := newHarness(t, dir, options{})
	defer h.close()
	conv := h.create(alice)
	failure := error(journal.ErrInvalid)
	h.journal.err.Store(&failure)
	_, err := h.PutFile(t.Context(), alice, conv, agent.File{}, bytes.NewReader(picture))
	h.journal.err.Store(nil)
	if err == nil || storedIn(t, dir) != 0 {
		t.Errorf("%v, %d files", err, storedIn(t, dir))
	}
}
