package doctor_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/leat-dev/leat/internal/app/doctor"
	"github.com/leat-dev/leat/internal/store/journal/sqlite"
)

func TestStore(t *testing.T) {
	dir := t.TempDir()
	store := func() []doctor.Finding { return doctor.Store(t.Context(), dir, "leat.lock") }
	if found := store(); len(found) != 0 {
		t.Errorf("an empty folder: %+v", found)
	}
	j, err := sqlite.Open(sqlite.Options{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if found := store(); len(found) != 0 {
		t.Errorf("a folder in use: %+v", found)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	want(t, store(), doctor.OK, "can be read")
	if left, err := filepath.Glob(filepath.Join(dir, "leat.db-*")); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
	path := filepath.Join(dir, "leat.db")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+"-wal", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, store(), doctor.OK, "was not stopped")
	if err := os.Remove(path + "-wal"); err != nil {
		t.Fatal(err)
	}
	for i := 100; i < len(b); i++ { // all but the header
		b[i] = 0xff
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, store(), doctor.Fail, "malformed")
}

func TestDamaged(t *testing.T) {
	said := `{"agents":[]}`
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/overview" || r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = fmt.Fprint(w, said) // an error means that the test has ended the request
	}))
	t.Cleanup(ts.Close)
	damaged := func(token string) []doctor.Finding {
		return doctor.Damaged(t.Context(), client(t), ts.URL, token)
	}
	want(t, damaged(token), doctor.OK, "no damaged conversations")
	want(t, damaged(""), doctor.Warn, "401")
	said = `{"damaged":[{"conversation":"c","seq":7,"error":"bad"},{"conversation":"d","error":"bad"}]}`
	want(t, damaged(token), doctor.Fail, "conversation c is damaged at seq 7: bad")
	want(t, damaged(token), doctor.Fail, "conversation d is damaged: bad")
}
