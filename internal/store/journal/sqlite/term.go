package sqlite

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/internal/store/journal"
)

// maxTerms is the number of terms stored for a log. A reader whose cursor has an older term gets a snapshot. It bounds the size
// of a log's row.
const maxTerms = 32

// newTerm returns a random id. Each Open begins a new term, because the file may have lost its newest events: in a power cut with
// sync normal, or when a file was lost or replaced.
func newTerm() string {
	var b [6]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// openTerm returns the id of the current term.
func (x *index) openTerm() string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.term
}

// withTerm returns terms with one more that begins at firstSeq, unless the newest has that id already. It doesn't change terms.
// Copies share the prefix of the slice, so it is never appended to in place.
func withTerm(terms []journal.Term, firstSeq int64, id string) []journal.Term {
	n := len(terms)
	if n > 0 && terms[n-1].ID == id {
		return terms
	}
	// Beyond maxTerms, the oldest term is dropped.
	terms = terms[max(0, n-maxTerms+1):]
	return append(terms[:len(terms):len(terms)], journal.Term{FirstSeq: firstSeq, ID: id})
}

// beginTerm stores the current term with the first events that a log gets in it. A log gets at most one write for each opening
// of the store.
func (t *tx) beginTerm(l *log, p *pending) {
	if n := len(p.terms); n > 0 && p.terms[n-1].ID == t.term {
		return
	}
	p.terms = withTerm(p.terms, p.head+1, t.term)
	_ = t.exec("UPDATE conversations SET terms = ? WHERE n = ?", formatTerms(p.terms), l.n) // t.err has it
}

// formatTerms encodes terms for the file: "ID:FIRST", separated by spaces.
func formatTerms(terms []journal.Term) string {
	var b []byte
	for i, t := range terms {
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendInt(append(append(b, t.ID...), ':'), t.FirstSeq, 10)
	}
	return string(b)
}

// parseTerms is the inverse of formatTerms. Its error wraps [journal.ErrCorrupt]. A log with such a value is quarantined,
// because its cursors couldn't be checked.
func parseTerms(s string) ([]journal.Term, error) {
	if s == "" {
		return nil, nil
	}
	terms := make([]journal.Term, 0, strings.Count(s, " ")+1)
	for field := range strings.SplitSeq(s, " ") {
		id, digits, _ := strings.Cut(field, ":")
		firstSeq, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || id == "" || firstSeq < 1 {
			return nil, fmt.Errorf("term %q: %w", field, journal.ErrCorrupt)
		}
		terms = append(terms, journal.Term{FirstSeq: firstSeq, ID: id})
	}
	return terms, nil
}
