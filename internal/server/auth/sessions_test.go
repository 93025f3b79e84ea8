package auth_test

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/auth"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

func TestSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		open := func() server.SessionStore {
			s, err := auth.OpenSessions(t.Context(), j)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		first := open()
		if len(first.Key()) < 32 || bytes.Equal(first.Key(), make([]byte, len(first.Key()))) {
			t.Fatalf("key of %d bytes", len(first.Key()))
		}
		if err := first.End(t.Context(), "a", time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if !first.IsEnded("a") || first.IsEnded("b") {
			t.Error("ended: the wrong ones")
		}
		second := open()
		if !bytes.Equal(first.Key(), second.Key()) || !second.IsEnded("a") || second.IsEnded("b") {
			t.Error("a restart forgets")
		}
		other, err := auth.OpenSessions(t.Context(), memory.New())
		if err != nil || bytes.Equal(other.Key(), first.Key()) {
			t.Errorf("two stores have one key, %v", err)
		}
		// An ended session whose token has expired is not stored.
		time.Sleep(2 * time.Hour)
		if open().IsEnded("a") {
			t.Error("an ended session is stored longer than its cookie is valid")
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if err := second.End(t.Context(), "b", time.Now().Add(time.Hour)); !errors.Is(err, gateway.ErrUnavailable) || !second.IsEnded("b") {
			t.Errorf("without a journal: %v, ended %v", err, second.IsEnded("b"))
		}
		if _, err := auth.OpenSessions(t.Context(), j); err == nil {
			t.Error("opened on a closed journal")
		}
	})
}
