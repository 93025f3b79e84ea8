package openclaw

import "strings"

// tight stands for a text without its space: how many bytes that leaves, and their FNV-1a hash. The gateway trims
// and folds space when it writes a final, so that two forms of one text are compared by it.
type tight struct {
	N   int    `json:"n,omitempty"`
	Sum uint64 `json:"sum,omitempty"`
}

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
	space     = " \t\r\n\v\f"
)

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// add appends a text.
func (t *tight) add(s string) {
	if t.N == 0 {
		t.Sum = fnvOffset
	}
	for i := range len(s) {
		if c := s[i]; !isSpace(c) {
			t.Sum = (t.Sum ^ uint64(c)) * fnvPrime
			t.N++
		}
	}
}

// begins reports whether s begins with the text, and where in s the text then ends.
func (t tight) begins(s string) (end int, ok bool) {
	if t.N == 0 {
		return 0, true
	}
	if len(s) < t.N {
		return 0, false
	}
	var have tight
	for i := 0; i < len(s); i++ {
		if isSpace(s[i]) {
			continue
		}
		have.add(s[i : i+1])
		if have.N == t.N {
			return i + 1, have.Sum == t.Sum
		}
	}
	return 0, false
}

// is reports whether s is the text.
func (t tight) is(s string) bool {
	end, ok := t.begins(s)
	return ok && strings.Trim(s[end:], space) == ""
}
