package jsonscan

// scanner parses JSON of one expected form from its beginning. After a method returned false, the position is undefined, and the whole text must
// be passed to encoding/json.
type scanner struct{ b []byte }

// New returns a scanner of b.
func New(b []byte) scanner { return scanner{b} }

// Lit consumes the literal l, such as {"type": with its punctuation.
func (s *scanner) Lit(l string) bool {
	if len(s.b) < len(l) || string(s.b[:len(l)]) != l {
		return false
	}
	s.b = s.b[len(l):]
	return true
}

// Int consumes a number from 0 to 999999999.
func (s *scanner) Int() (n int, ok bool) {
	i := 0
	for ; i < len(s.b) && i < 9 && s.b[i] >= '0' && s.b[i] <= '9'; i++ {
		n = n*10 + int(s.b[i]-'0')
	}
	if i == 0 || (i > 1 && s.b[0] == '0') {
		return 0, false
	}
	s.b = s.b[i:]
	return n, true
}

// String consumes a string and returns it undecoded, with its quotes.
func (s *scanner) String() (token []byte, ok bool) {
	n, _ := TokenLen(s.b)
	if n == 0 {
		return nil, false
	}
	token, s.b = s.b[:n], s.b[n:]
	return token, true
}

// Space skips white space.
func (s *scanner) Space() {
	for len(s.b) > 0 && (s.b[0] == ' ' || s.b[0] == '\n' || s.b[0] == '\r' || s.b[0] == '\t') {
		s.b = s.b[1:]
	}
}

// End skips white space and reports whether nothing follows.
func (s *scanner) End() bool {
	s.Space()
	return len(s.b) == 0
}
