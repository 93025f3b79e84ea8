package sentence

import (
	"regexp"
	"strings"
	"unicode"
)

// maxFormula is the length in bytes up to which a formula is spoken rather than announced.
const maxFormula = 60

// mathWords are commands that are spoken as a character.
var mathWords = strings.NewReplacer(
	`\times`, "×", `\cdot`, "·", `\div`, "÷", `\pm`, "±", `\leq`, "≤", `\geq`, "≥", `\le`, "≤", `\ge`, "≥", `\neq`, "≠", `\ne`, "≠",
	`\approx`, "≈", `\infty`, "∞", `\alpha`, "α", `\beta`, "β", `\gamma`, "γ", `\delta`, "δ", `\lambda`, "λ", `\mu`, "μ", `\pi`, "π",
	`\sigma`, "σ", `\theta`, "θ", `\omega`, "ω", `\%`, "%", `\$`, "$", `\,`, " ", `^2`, "²", `^3`, "³", `^{2}`, "²", `^{3}`, "³",
)

// mathGroup matches braces around a word.
var mathGroup = regexp.MustCompile(`\{(\w+)\}`)

// sayFormula returns how a formula is spoken: as it is if it is simple, or else as the word for
// formulas.
func (s *Segmenter) sayFormula(content string) string {
	text := strings.TrimSpace(mathGroup.ReplaceAllString(mathWords.Replace(content), "$1"))
	if len(content) > maxFormula || strings.ContainsAny(text, `\{}&^`) || !hasAlnum([]rune(text)) {
		return s.words().formula
	}
	return strings.ReplaceAll(text, "_", " ")
}

// readDollar reads a dollar: the beginning of a formula, or of an amount.
func (s *Segmenter) readDollar(isFinal bool) bool {
	if len(s.source) < 3 && !isFinal && strings.TrimLeft(s.source, "$") == "" {
		return false
	}
	switch n := runLength(s.source); {
	// More of them are no marker. The ones after the first must not become one either.
	case n > 2 || s.before == '$':
		s.sayRune('$', 1)
		return true
	case n == 2:
		s.announceFormula(2, "$$")
		return true
	}
	end, result := dollarEnd(s.source, s.before, isFinal)
	switch result {
	case needsMore:
		return false
	case noMatch:
		s.sayRune('$', 1)
	case match:
		s.say(s.sayFormula(s.source[1:end]), end+1)
	}
	return true
}

// dollarEnd returns the position of the dollar that ends a formula. A formula that begins with a
// digit has no space, because amounts are more frequent.
func dollarEnd(source string, before rune, isFinal bool) (int, search) {
	if isAlnum(before) {
		return 0, noMatch
	}
	text := source[:min(len(source), maxHold)]
	isAmount := false
	for i := 1; i < len(text); i++ {
		c := text[i]
		switch {
		case i == 1 && unicode.IsSpace(rune(c)), c == '\n', isAmount && c == ' ':
			return 0, noMatch
		case i == 1:
			isAmount = c >= '0' && c <= '9'
		case i == 2 && isUpper(text[1]) && isUpper(c): // the name of a variable
			return 0, noMatch
		case c == '\\':
			i++
		case c == '$':
			if i+1 == len(source) && !isFinal {
				return 0, needsMore
			}
			isPrice := i+1 < len(source) && source[i+1] >= '0' && source[i+1] <= '9'
			if text[i-1] == ' ' || isPrice {
				return 0, noMatch
			}
			return i, match
		}
	}
	return 0, textEnd(source, isFinal)
}

// isUpper reports whether a byte is a capital letter.
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

// announceFormula announces a formula that may span lines, and skips it.
func (s *Segmenter) announceFormula(n int, closer string) {
	s.say(s.words().formula, n)
	s.skipped = skipped{closer: closer, isBlock: true}
}

// readFormula reads \( or \[, with which formulas begin. Escaped brackets around plain words are
// text.
func (s *Segmenter) readFormula(isFinal bool) bool {
	closer := `\)`
	if s.source[1] == '[' {
		closer = `\]`
	}
	text := s.source[:min(len(s.source), maxHold)]
	end := strings.Index(text, closer)
	newline := strings.IndexByte(text, '\n')
	switch {
	case newline >= 0 && (end < 0 || newline < end):
		end = -1
	case end < 0 && textEnd(s.source, isFinal) == needsMore:
		return false
	}
	switch {
	case end >= 0 && strings.ContainsAny(text[2:end], `=+^_\{}<>`):
		s.say(s.sayFormula(text[2:end]), end+2)
	case end < 0 && s.source[1] == '[':
		s.announceFormula(2, closer)
	default:
		s.hide(1)
		s.sayRune(rune(s.source[0]), 1)
	}
	return true
}
