package sentence

import (
	"slices"
	"unicode"
)

// maxPeek is how many characters after a sentence are read to find its next letter. Beyond them the
// sentence has ended.
const maxPeek = 12

// A verdict says whether a sentence ends at a place.
type verdict int

const (
	continues verdict = iota
	ends
	undecided // the next characters tell
)

// boundary returns the position behind the first sentence of t, with the white space that follows
// it, or 0. The sentence begins at start, and no boundary is before from. If there is none, the
// next search may begin at next.
func (r *rules) boundary(t []rune, start, from int, isFinal bool) (stop, next int) {
	for i := from; i < len(t); {
		switch c := t[i]; {
		case c == '\n':
			// An empty line belongs to the next sentence rather than being one.
			if hasVisible(t[start:i]) {
				return i + 1, i + 1
			}
			i++
		// Thai has no full stop. A space between two letters ends a sentence or a part of one.
		case c == ' ' && i > start && isSpaced(t[i-1]):
			if i+1 == len(t) {
				return 0, i
			}
			if isSpaced(t[i+1]) {
				return i + 1, i + 1
			}
			i++
		// In Greek a semicolon is the question mark.
		case isTerminator(c) || c == ';' && i > start && unicode.Is(unicode.Greek, t[i-1]):
			end, isUndecided := groupEnd(t, start, i, isFinal)
			if isUndecided {
				return 0, i
			}
			switch v := r.judge(t, start, i, end, isFinal); v {
			case ends:
				for end < len(t) && t[end] == ' ' {
					end++
				}
				if end < len(t) && t[end] == '\n' {
					end++
				}
				return end, end
			case undecided:
				return 0, i
			case continues:
				i = end
			}
		default:
			i++
		}
	}
	return 0, len(t)
}

// groupEnd returns the position behind the terminators and closing quotes and brackets that begin
// at a position.
func groupEnd(t []rune, start, at int, isFinal bool) (end int, isUndecided bool) {
	for end = at + 1; end < len(t); end++ {
		if isTerminator(t[end]) {
			continue
		}
		// French has a space in front of its closing quotes.
		if isSpace(t[end]) && t[end] != '\n' && count(t[start:end], '«') > count(t[start:end], '»') {
			if end+1 == len(t) {
				return end, !isFinal
			}
			if t[end+1] == '»' {
				end++
			}
		}
		isCloser, isUndecided := closes(t, start, end, isFinal)
		if isUndecided {
			return end, true
		}
		if !isCloser {
			return end, false
		}
	}
	return end, !isFinal
}

// judge says whether a sentence ends with the terminators and closers between at and end.
func (r *rules) judge(t []rune, start, at, end int, isFinal bool) verdict {
	group := t[at:end]
	if end == len(t) || t[end] == '\n' {
		return ends
	}
	// The strongest character of the group decides: ?! is a question, and ... is an ellipsis, after
	// which a sentence often continues.
	hasStrong, dots, isQuoted := false, 0, false
	for _, c := range group {
		switch {
		case isUnambiguous(c):
			return ends
		case c == ellipsis, c == '⋯':
			dots += 3
		case c == '.', c == wideDot:
			dots++
		case isTerminator(c), c == ';':
			hasStrong = true
		default:
			isQuoted = true
		}
	}
	before, after := rune(0), t[end]
	if at > start {
		before = t[at-1]
	}
	// The dot of Chinese numbers is as wide as its full stop once was.
	if group[0] == wideDot && !unicode.IsDigit(after) {
		return ends
	}
	if after != ' ' {
		return judgeUnspaced(before, after, hasStrong, dots)
	}
	// The next word is not needed, so the sentence doesn't wait for it.
	if hasStrong && !isQuoted {
		return ends
	}
	word, isComplete := peek(t, end, isFinal)
	switch {
	case len(word) == 0 && !isComplete:
		return undecided
	case len(word) == 0:
		return ends
	case hasStrong, dots > 1:
		if unicode.IsLower(word[0]) {
			return continues // "Why?" she asked. / Well... maybe.
		}
		return ends
	case isQuoted && !unicode.IsLower(word[0]):
		return ends
	}
	return r.judgeDot(t[start:at], word, isComplete)
}

// judgeUnspaced judges terminators of words and numbers, which no space follows. They end sentences
// only in scripts without spaces.
func judgeUnspaced(before, after rune, hasStrong bool, dots int) verdict {
	if hasStrong && (isCJK(before) || isCJK(after)) || dots == 1 && isCJK(before) && isCJK(after) {
		return ends
	}
	return continues
}

// peek returns the first word after a space. It is incomplete if its next letters aren't there yet,
// and empty if there is none near.
func peek(t []rune, from int, isFinal bool) (word []rune, isComplete bool) {
	i := from
	for i < len(t) && !isAlnum(t[i]) {
		if t[i] == '\n' || i-from >= maxPeek {
			return nil, true
		}
		i++
	}
	end := i
	for end < len(t) && isAlnum(t[end]) && end-i < maxPeek {
		end++
	}
	return t[i:end], isFinal || end < len(t) || end-i == maxPeek
}

// judgeDot says whether a full stop that a space and a word follow ends the sentence.
func (r *rules) judgeDot(sentence, next []rune, isComplete bool) verdict {
	word := lastWord(sentence)
	switch {
	// This finds most abbreviations of all languages that have capital letters.
	case unicode.IsLower(next[0]):
		return continues
	// The dot follows a bracket or a quote.
	case len(word) == 0:
		return ends
	case isNumber(word):
		// A number alone is the mark of a list.
		if len(word) == len(sentence) || !hasAlnum(sentence[:len(sentence)-len(word)]) {
			return continues
		}
		switch {
		// Ordinals of more digits are rarer than years at the end of a sentence.
		case len(word) > 2:
			return ends
		case r.hasOrdinals:
			return continues
		case !isComplete:
			return undecided
		case isMonth(next):
			return continues
		}
		return ends
	case len(word) == 1 && hasInitials(word[0]), r.isAbbreviation(word):
		return continues
	case r.isNumbered(word) && unicode.IsDigit(next[0]):
		return continues
	case r.hasOrdinals && isRoman(word):
		return continues
	}
	return ends
}

// lastWord returns the word at the end of a sentence, with the dots within it.
func lastWord(t []rune) []rune {
	i := len(t)
	for i > 0 && (isAlnum(t[i-1]) || unicode.IsMark(t[i-1]) || t[i-1] == '.') {
		i--
	}
	return t[i:]
}

// isNumber reports whether a word has digits only.
func isNumber(word []rune) bool {
	return !slices.ContainsFunc(word, func(r rune) bool { return !unicode.IsDigit(r) })
}

// isRoman reports whether a word is a Roman number.
func isRoman(word []rune) bool {
	return !slices.ContainsFunc(word, func(r rune) bool { return r != 'I' && r != 'V' && r != 'X' && r != 'L' })
}

// hasInitials reports whether single letters of a letter's script abbreviate names. A syllable of
// Korean is a word.
func hasInitials(r rune) bool {
	return unicode.IsLetter(r) && unicode.In(r, unicode.Latin, unicode.Cyrillic, unicode.Greek, unicode.Arabic, unicode.Armenian)
}

// hasAlnum reports whether a text has a letter or a digit, so that there is something to say.
func hasAlnum(t []rune) bool {
	return slices.ContainsFunc(t, isAlnum)
}

// hasVisible reports whether a text has more than white space.
func hasVisible(t []rune) bool {
	return slices.ContainsFunc(t, func(r rune) bool { return !unicode.IsSpace(r) })
}
