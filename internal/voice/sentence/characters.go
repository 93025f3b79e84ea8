package sentence

import "unicode"

const (
	noBreakSpace = '\u00A0' // is spoken like a space, but never ends a sentence
	ellipsis     = '…'
	wideDot      = '．'
	zwj, zwnj    = '\u200D', '\u200C' // join letters of some scripts, and emoji
)

// isTerminator reports whether a character may end a sentence.
func isTerminator(r rune) bool {
	switch r {
	case '.', '!', '?', '。', '！', '？':
		return true
	case ellipsis, '⋯', '；', '།', '។', '៕':
		return true // Unicode doesn't count these
	}
	return r >= 0x80 && unicode.Is(unicode.Sentence_Terminal, r)
}

// isUnambiguous reports whether a terminator ends a sentence whatever follows. The others are used
// within words, and need a space.
func isUnambiguous(r rune) bool {
	switch r {
	case '.', '!', '?', ellipsis, '⋯', wideDot:
		return false
	}
	return isTerminator(r)
}

// isClause reports whether a long sentence may be divided after a character. In scripts with spaces
// one has to follow.
func isClause(r rune) (isClause, needsSpace bool) {
	switch r {
	case '，', '、', '：', '､':
		return true, false
	case ',', ';', ':', '،', '؛', '၊', '፣', '·', '—', '–':
		return true, true
	}
	return false, false
}

// isCJK reports whether a character belongs to a script without spaces and case, whose characters
// take about as long to say as two others. Korean has spaces, but its syllables are as long.
func isCJK(r rune) bool {
	return r >= 0x1100 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// isSpaced reports whether a character belongs to a script that ends sentences with spaces alone.
func isSpaced(r rune) bool {
	return r >= 0x0E00 && r < 0x0F00 && (unicode.IsLetter(r) || unicode.IsMark(r))
}

// isAlnum reports whether a character is a letter or a digit.
func isAlnum(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// isSpace reports whether a character of the spoken text is white space.
func isSpace(r rune) bool { return r == ' ' || r == '\n' || r == noBreakSpace }

// isSilent reports whether a character has no sound: emoji and other pictures, what modifies them,
// and invisible characters.
func isSilent(r rune) bool {
	switch {
	case r < 0x80:
		return r < ' ' || r == 0x7F
	case r == zwj, r == zwnj:
		return false // they change letters; a zwj between emoji is handled by its neighbour
	case r == unicode.ReplacementChar, r >= 0xFE00 && r <= 0xFE0F, r == 0x20E3, r >= 0x1F3FB && r <= 0x1F3FF, r >= 0xE0000 && r <= 0xE0FFF:
		return true
	case unicode.Is(unicode.So, r):
		return !isSpokenSymbol(r)
	}
	return unicode.In(r, unicode.Cf, unicode.Cc, unicode.Co)
}

// isSpokenSymbol reports whether a symbol stands for a word: a degree, a trade mark, a unit.
func isSpokenSymbol(r rune) bool {
	switch r {
	case '♀', '♂':
		return false
	}
	return r < 0x250 || r >= 0x0900 && r < 0x2000 || r >= 0x2100 && r < 0x2150 || r >= 0x3200 && r < 0x3400
}

// closes reports whether the character at a position of a sentence closes what is quoted or put in
// brackets. A terminator precedes it. It is undecided if the next character would tell.
func closes(t []rune, start, at int, isFinal bool) (isCloser, isUndecided bool) {
	switch r := t[at]; r {
	case '"', '＂', '\'':
		// An odd number before it means that it has an opening partner.
		if count(t[start:at], r)%2 == 1 && r != '\'' {
			return true, false
		}
		if at+1 == len(t) {
			return true, !isFinal
		}
		return !isAlnum(t[at+1]), false
	case '“':
		return count(t[start:at], '„') > count(t[start:at], '“'), false
	case '‘':
		return count(t[start:at], '‚') > count(t[start:at], '‘'), false
	case '«':
		return count(t[start:at], '»') > count(t[start:at], '«'), false
	case '»':
		if count(t[start:at], '«') > count(t[start:at], '»') {
			return true, false
		}
		if at+1 == len(t) {
			return true, !isFinal
		}
		return !isAlnum(t[at+1]), false
	default:
		return r >= ')' && unicode.In(r, unicode.Pe, unicode.Pf, unicode.Mn), false
	}
}

// count returns how often a text contains a character.
func count(t []rune, r rune) int {
	n := 0
	for _, c := range t {
		if c == r {
			n++
		}
	}
	return n
}
