// Package jsonscan reads JSON of one expected shape without encoding/json, which takes several times as long. It is for
// the few frames that make up nearly all of a stream: a decoder tries it first, and gives anything else to encoding/json.
//
// Invariant: what a Scanner accepts, encoding/json accepts with the same meaning. The reverse does not hold.
package jsonscan

// Scanner reads a JSON text from its beginning. A method that reports false may have moved it; the text then goes to
// encoding/json as a whole.
type Scanner struct{ b []byte }

// New returns a scanner of b.
func New(b []byte) Scanner { return Scanner{b} }

// Lit takes exactly these bytes.
func (s *Scanner) Lit(l string) bool {
	if len(s.b) < len(l) || string(s.b[:len(l)]) != l {
		return false
	}
	s.b = s.b[len(l):]
	return true
}

// Int takes a number from 0 to 999999999.
func (s *Scanner) Int() (n int, ok bool) {
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

// String takes a string and returns it as it stands, quotes included.
func (s *Scanner) String() (token []byte, ok bool) {
	if len(s.b) == 0 || s.b[0] != '"' {
		return nil, false
	}
	for i := 1; i < len(s.b); i++ {
		switch c := s.b[i]; {
		case c == '"':
			token, s.b = s.b[:i+1], s.b[i+1:]
			return token, true
		case c == '\\':
			if i++; i >= len(s.b) {
				return nil, false
			}
			switch s.b[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				for range 4 {
					if i++; i >= len(s.b) || !hex(s.b[i]) {
						return nil, false
					}
				}
			default:
				return nil, false
			}
		case c < 0x20:
			return nil, false
		}
	}
	return nil, false
}

func hex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// Space skips white space.
func (s *Scanner) Space() {
	for len(s.b) > 0 && (s.b[0] == ' ' || s.b[0] == '\n' || s.b[0] == '\r' || s.b[0] == '\t') {
		s.b = s.b[1:]
	}
}

// End skips white space and reports whether nothing follows.
func (s *Scanner) End() bool {
	s.Space()
	return len(s.b) == 0
}
