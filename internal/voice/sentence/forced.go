package sentence

import (
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

const (
	// maxLength is how many characters of a sentence without an end are spoken at once: about 20
	// seconds. It bounds what an engine gets with one request, and how long text waits for a full
	// stop.
	maxLength = 250
	// minForced is the shortest piece that a long sentence is divided into at a comma. Shorter ones
	// sound like sentences of their own.
	minForced = 60
)

// forcedCut returns where to divide a text of more than maxLength characters that has no sentence:
// after a comma or a full stop that isn't certain, else after a space, else between two characters
// as people see them. Positions that canCut refuses are within something that is spoken as a whole;
// nil refuses none.
func forcedCut(t []rune, canCut func(at int) bool) int {
	// The last position is the best one, so that as few pieces as possible sound like sentences.
	limit := min(len(t)-1, maxLength)
	space := 0
	for i := limit; i > 0; i-- {
		if canCut != nil && !canCut(i) {
			continue
		}
		before := t[i-1]
		switch {
		case i >= minForced && endsClause(t[:i]):
			return i
		case space == 0 && isSpace(before):
			space = i
		}
	}
	if space > 0 {
		return space
	}
	return graphemeCut(t[:limit+1], canCut)
}

// endsClause reports whether a text ends with a comma or the like.
func endsClause(t []rune) bool {
	last := len(t) - 1
	hasSpace := t[last] == ' '
	if hasSpace {
		last--
	}
	if last < 3 {
		return false
	}
	// A dot after a short word is an abbreviation.
	if isTerminator(t[last]) {
		return hasSpace && isAlnum(t[last-1]) && isAlnum(t[last-2]) && isAlnum(t[last-3])
	}
	ok, needsSpace := isClause(t[last])
	return ok && (hasSpace || !needsSpace)
}

// graphemeCut returns the last position before the last character of a text at which a character as
// people see it ends.
func graphemeCut(t []rune, canCut func(at int) bool) int {
	s := string(t)
	stop, at, state := 0, 0, -1
	for s != "" {
		var cluster string
		cluster, s, _, state = uniseg.FirstGraphemeClusterInString(s, state)
		at += utf8.RuneCountInString(cluster)
		if at < len(t) && (canCut == nil || canCut(at)) {
			stop = at
		}
	}
	if stop == 0 {
		return len(t) - 1 // one character with hundreds of accents, or a name that is spoken as a whole
	}
	return stop
}
