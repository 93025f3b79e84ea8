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

// A purge removes a user's uploads, including one that is being received. A legal hold prevents it.
func TestPurgeRemovesUploads(t *testing.T) {
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
	h := newHarness(t, j, func(c *gateway.Config) {
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
			t.Fatal("the bytes of the running upload do not arrive")
		}
	}

	hold := gateway.Hold{Tenant: alice.Tenant, Subject: alice.Subject}
	if _, err := h.Holds().Place(t.Context(), admin, hold); err != nil {
		t.Fatal(err)
	}
	p := data.NewPurger(h.Gateway, j, uploads, nil, nil, quiet)
	var held *gateway.Rejection
	if _, err := p.Purge(t.Context(), admin, subject(alice), false); !errors.As(err, &held) || held.Reason != gateway.ReasonHeld {
		t.Errorf("purge under a legal hold: %v", err)
	}
	if err := uploads.DropUpload(t.Context(), alice, done.ID); !errors.As(err, &held) || held.Reason != gateway.ReasonHeld {
		t.Errorf("removal of an upload under a legal hold: %v", err)
	}
	for _, mark := range marks {
		if grep(t, dir, mark) == "" {
			t.Errorf("%q was removed in spite of the legal hold", mark)
		}
	}

	if err := h.Holds().Release(t.Context(), admin, hold); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Purge(t.Context(), admin, subject(alice), false); err != nil {
		t.Fatal(err)
	}
	if err := <-cut; err == nil {
		t.Error("the running upload was completed")
	}
	if found := grep(t, dir, "m4rk"); found != "" {
		t.Errorf("remaining upload: %s", found)
	}
	for _, u := range []attachments.Upload{done, coming} {
		if _, err := uploads.Upload(t.Context(), alice, u.ID); !errors.Is(err, gateway.ErrNotFound) {
			t.Errorf("remaining upload: %v", err)
		}
	}
	if b, err := os.ReadFile(kept.Location.Path); err != nil || string(b) != "kept for bob" {
		t.Errorf("upload of bob: %q, %v", b, err)
	}
}
