package sqlite

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/leat-dev/leat/internal/store/journal"
)

func termsOf(t *testing.T, j *Journal, id string) []journal.Term {
	t.Helper()
	r, err := j.Read(t.Context(), id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return r.Terms
}

func appendRecord(t *testing.T, j *Journal, id string) {
	t.Helper()
	if err := j.Append(t.Context(), record(id, head(t, j, id))); err != nil {
		t.Fatal(err)
	}
}

// Each opening of the file begins a term. A term keeps its first seq whatever happens to the log, and the newest is reported
// even before it has an event.
func TestTerms(t *testing.T) {
	dir := t.TempDir()
	var want []journal.Term
	for round := range maxTerms + 5 {
		j, err := Open(Options{Dir: dir, Sync: Normal, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			create1(t, j, "c")
			create1(t, j, "idle")
			appendRecord(t, j, "idle")
		}
		now := termsOf(t, j, "c")
		last := now[len(now)-1]
		if n := head(t, j, "c"); last.FirstSeq != n+1 {
			t.Fatalf("round %d: the next event has seq %d, its term begins at %d", round, n+1, last.FirstSeq)
		}
		if want = append(want, last); len(want) > maxTerms {
			want = want[1:]
		}
		appendRecord(t, j, "c")
		appendRecord(t, j, "c")
		if round%3 == 0 {
			if err := errors.Join(j.Compact(t.Context(), "c", head(t, j, "c")), j.Trim(t.Context(), "c", head(t, j, "c")-1)); err != nil {
				t.Fatal(err)
			}
		}
		sameTerms(t, termsOf(t, j, "c"), want)
		if idle := termsOf(t, j, "idle"); round > 0 && (len(idle) != 2 || idle[0].FirstSeq != 1 || idle[1] != (journal.Term{FirstSeq: 2, ID: last.ID})) {
			t.Errorf("round %d: terms of a log without new events: %v", round, idle)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func sameTerms(t *testing.T, got, want []journal.Term) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d terms, want %d: %v", len(got), len(want), got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("term %d is %v, want %v", i, got[i], want[i])
		}
	}
}

// After a commit with an unknown result, the file is reopened and a new term begins.
func TestTermAfterReopen(t *testing.T) {
	j := start(t, Options{Sync: Normal})
	create1(t, j, "c")
	appendRecord(t, j, "c")
	release := j.hold(t)
	j.faults = func(point string) error {
		if point == "committed" {
			return errors.New("an error of the disk")
		}
		return nil
	}
	release()
	if err := j.Append(t.Context(), record("c", 1)); !errors.Is(err, journal.ErrUnknown) {
		t.Fatal(err)
	}
	terms := termsOf(t, j, "c")
	if n := head(t, j, "c"); len(terms) != 2 || terms[1].FirstSeq != n+1 || terms[0].ID == terms[1].ID {
		t.Errorf("head %d, terms %v", n, terms)
	}
}

// A log that lost its newest events uses their seqs again, in another term.
func TestTermAfterLoss(t *testing.T) {
	dir := t.TempDir()
	j := openKept(t, dir)
	create1(t, j, "c")
	appendRecord(t, j, "c")
	if err := j.Close(); err != nil { // the first event is in the main file
		t.Fatal(err)
	}
	j = openKept(t, dir)
	appendRecord(t, j, "c")
	appendRecord(t, j, "c")
	lost := termsOf(t, j, "c")
	copied := t.TempDir() // the files as a kill leaves them, without the write-ahead log
	b, err := os.ReadFile(filepath.Join(dir, fileName))
	if err == nil {
		err = errors.Join(os.WriteFile(filepath.Join(copied, fileName), b, 0o600), j.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	j = start(t, Options{Dir: copied})
	if n := head(t, j, "c"); n != 1 {
		t.Fatalf("head is %d: nothing was lost", n)
	}
	appendRecord(t, j, "c")
	got := termsOf(t, j, "c")
	if len(lost) != 2 || len(got) != 2 || got[0] != lost[0] || got[1].FirstSeq != 2 || got[1].ID == lost[1].ID {
		t.Errorf("terms %v before the loss, %v after it", lost, got)
	}
}

func openKept(t *testing.T, dir string) *Journal {
	t.Helper()
	j, err := Open(Options{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestParseTerms(t *testing.T) {
	for _, s := range []string{"a", "a:", ":1", "a:0", "a:1  b:2", "a:x", " "} {
		if terms, err := parseTerms(s); !errors.Is(err, journal.ErrCorrupt) {
			t.Errorf("%q: %v, %v", s, terms, err)
		}
	}
	want := []journal.Term{{FirstSeq: 1, ID: "a1"}, {FirstSeq: 1 << 50, ID: "b2"}}
	got, err := parseTerms(formatTerms(want))
	if err != nil {
		t.Fatal(err)
	}
	sameTerms(t, got, want)
}
