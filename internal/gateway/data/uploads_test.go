package data_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/attachments"
	"github.com/leat-dev/leat/internal/gateway/data"
	"github.com/leat-dev/leat/internal/store/files"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// What a user brought goes with a purge, also what is on its way just then; a legal hold keeps all of it.
func TestPurgeTakesUploads(t *testing.T) {
	dir := t.TempDir()
	j := memory.New()
	var errs [3]error
	c := attachments.Config{Journal: j}
	c.Files, errs[0] = files.Open(filepath.Join(dir, "files"))
	c.Uploads, errs[1] = files.OpenUploads(filepath.Join(dir, "uploads"))
	c.Workspace, errs[2] = files.OpenWorkspace(filepath.Join(dir, "space"))
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Workspace.Close() })
	store := attachments.NewStore(c)
	h := newHouse(t, j, func(c *gateway.Config) {
		c.Attachments = store
	})
	uploads := attachments.NewService(store, h.Gateway)
	t.Cleanup(h.close)
	begin := func(p gateway.Principal, conversation, text string) attachments.Upload {
		t.Helper()
		u, err := uploads.CreateUpload(t.Context(), p, attachments.NewUpload{Conversation: conversation, Name: "x.txt", Length: int64(len(text))})
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	bring := func(p gateway.Principal, conversation, text string) attachments.Upload {
		t.Helper()
		u, err := uploads.AppendUpload(t.Context(), p, begin(p, conversation, text).ID, 0, strings.NewReader(text), func() {})
		if err != nil || u.Location == nil {
			t.Fatalf("%+v, %v", u, err)
		}
		return u
	}
	own := h.talk(alice, "", "hello")
	marks := []string{"m4rk to the workspace", "m4rk to her conversation", "m4rk is on its way"}
	done := bring(alice, "", marks[0])
	bring(alice, own, marks[1])
	kept := bring(bob, "", "kept for bob")

	r, w := io.Pipe()
	coming := begin(alice, "", marks[2]+", and more")
	cut := make(chan error, 1)
	go func() {
		_, err := uploads.AppendUpload(t.Context(), alice, coming.ID, 0, r, func() { _ = w.CloseWithError(os.ErrDeadlineExceeded) })
		cut <- err
	}()
	if _, err := io.WriteString(w, marks[2]); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); grep(t, dir, marks[2]) == ""; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("what is on its way does not come")
		}
	}

	hold := gateway.Hold{Tenant: alice.Tenant, Subject: alice.Subject}
	if _, err := h.Holds().Place(t.Context(), admin, hold); err != nil {
		t.Fatal(err)
	}
	p := data.NewPurger(h.Gateway, j, uploads, nil, quiet)
	var held *gateway.Rejection
	if _, err := p.Purge(t.Context(), admin, subject(alice), false); !errors.As(err, &held) || held.Reason != gateway.ReasonHeld {
		t.Errorf("purge of what is held: %v", err)
	}
	if err := uploads.DropUpload(t.Context(), alice, done.ID); !errors.As(err, &held) || held.Reason != gateway.ReasonHeld {
		t.Errorf("she takes back what is held: %v", err)
	}
	for _, mark := range marks {
		if grep(t, dir, mark) == "" {
			t.Errorf("%q is gone in spite of the hold", mark)
		}
	}

	if err := h.Holds().Release(t.Context(), admin, hold); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Purge(t.Context(), admin, subject(alice), false); err != nil {
		t.Fatal(err)
	}
	if err := <-cut; err == nil {
		t.Error("what was on its way came whole")
	}
	if found := grep(t, dir, "m4rk"); found != "" {
		t.Errorf("left of her uploads: %s", found)
	}
	for _, u := range []attachments.Upload{done, coming} {
		if _, err := uploads.Upload(t.Context(), alice, u.ID); !errors.Is(err, gateway.ErrNotFound) {
			t.Errorf("an upload is left: %v", err)
		}
	}
	if b, err := os.ReadFile(kept.Location.Path); err != nil || string(b) != "kept for bob" {
		t.Errorf("bob's: %q, %v", b, err)
	}
}
