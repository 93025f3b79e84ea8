package jsonscan

// ValueLen returns the length of the JSON value that b begins with, and of the white space before it. It returns 0 if the value is
// invalid, or if its objects and arrays are nested deeper than limit.
func ValueLen(b []byte, limit int) int {
	p := parser{b: b, limit: limit}
	if !p.skip(0) {
		return 0
	}
	return p.i
}

// next reports whether another member or element follows, and consumes the comma before it. At anything else than a comma or the end, which
// it doesn't consume, it returns false too.
func (p *parser) next(end byte, isFirst bool) bool {
	p.space()
	switch c := p.at(); {
	case c == end:
		return false
	case isFirst:
		return true
	case c != ',':
		return false
	}
	p.i++
	p.space()
	return true
}

// closed consumes the end of an object or array.
func (p *parser) closed(end byte) bool {
	isClosed := p.at() == end
	p.i++
	return isClosed
}

// skip consumes any value, with white space before it.
func (p *parser) skip(depth int) bool {
	p.space()
	c := p.at()
	if (c == '{' || c == '[') && depth >= p.limit {
		return false
	}
	switch c {
	case '"':
		n, _ := TokenLen(p.b[p.i:])
		p.i += n
		return n > 0
	case '{':
		p.i++
		for isFirst := true; p.next('}', isFirst); isFirst = false {
			n, _ := TokenLen(p.b[p.i:])
			p.i += n
			if p.space(); n == 0 || p.at() != ':' {
				return false
			}
			p.i++
			if !p.skip(depth + 1) {
				return false
			}
		}
		return p.closed('}')
	case '[':
		p.i++
		for isFirst := true; p.next(']', isFirst); isFirst = false {
			if !p.skip(depth + 1) {
				return false
			}
		}
		return p.closed(']')
	case 't':
		return p.literal("true")
	case 'f':
		return p.literal("false")
	case 'n':
		return p.literal("null")
	}
	return p.number()
}

// number consumes a number, by the grammar of RFC 8259, section 6.
func (p *parser) number() bool {
	if p.at() == '-' {
		p.i++
	}
	if p.at() == '0' {
		p.i++
	} else if !p.digits() {
		return false
	}
	if p.at() == '.' {
		p.i++
		if !p.digits() {
			return false
		}
	}
	if c := p.at(); c == 'e' || c == 'E' {
		p.i++
		if c := p.at(); c == '+' || c == '-' {
			p.i++
		}
		return p.digits()
	}
	return true
}

// digits consumes at least one digit.
func (p *parser) digits() bool {
	start := p.i
	for p.at() >= '0' && p.at() <= '9' {
		p.i++
	}
	return p.i > start
}

// literal consumes one of the words true, false and null.
func (p *parser) literal(l string) bool {
	if len(p.b)-p.i < len(l) || string(p.b[p.i:p.i+len(l)]) != l {
		return false
	}
	p.i += len(l)
	return true
}

// space consumes white space.
func (p *parser) space() {
	for p.i < len(p.b) && p.b[p.i] <= ' ' && (p.b[p.i] == ' ' || p.b[p.i] == '\n' || p.b[p.i] == '\r' || p.b[p.i] == '\t') {
		p.i++
	}
}

// at returns the byte at the position, or 0 at the end.
func (p *parser) at() byte {
	if p.i < len(p.b) {
		return p.b[p.i]
	}
	return 0
}
