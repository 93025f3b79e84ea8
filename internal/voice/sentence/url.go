package sentence

import "strings"

// schemes are how the addresses begin that are recognized in text.
var schemes = []string{"https://", "http://", "www."}

// readURL reads an address in text, of which only the host is spoken, or a letter.
func (s *Segmenter) readURL(isFinal bool) bool {
	var scheme string
	for _, p := range schemes {
		text := strings.ToLower(s.source[:min(len(s.source), len(p))])
		if text == p {
			scheme = p
			break
		}
		if strings.HasPrefix(p, text) && !isFinal {
			return false
		}
	}
	if scheme == "" {
		s.sayRune(rune(s.source[0]), 1)
		return true
	}
	text := s.source[:min(len(s.source), maxHold)]
	text = text[:completeLength(text)]
	end := strings.IndexFunc(text, endsURL)
	isLong := end < 0 && len(s.source) >= maxHold
	if end < 0 {
		if !isLong && !isFinal {
			return false
		}
		end = len(text)
	}
	if !isLong {
		end = trimURL(text[:end])
	}
	host := hostOf(text[:max(end, len(scheme))], scheme)
	if !hasAlnum([]rune(host)) {
		s.sayRune(rune(s.source[0]), 1)
		return true
	}
	s.say(host, end)
	if isLong {
		s.skipped = skipped{closer: " ", isBefore: true, isWord: true}
	}
	return true
}

// endsURL reports whether a character is not a part of an address in text. Addresses with Chinese
// characters are rare, and Chinese text has no space after an address.
func endsURL(r rune) bool {
	return r <= ' ' || strings.ContainsRune("<>\"`|[]\\^{}", r) || r == 0x7F || r == noBreakSpace || r >= 0x2000
}

// trimURL returns the length of an address without the punctuation of the sentence around it.
func trimURL(url string) int {
	for url != "" {
		last := url[len(url)-1]
		isOpen := last == ')' && strings.Count(url, "(") < strings.Count(url, ")")
		if !isOpen && strings.IndexByte(".,;:!?'*_~", last) < 0 {
			break
		}
		url = url[:len(url)-1]
	}
	return len(url)
}

// hostOf returns the host of an address, without what people don't say.
func hostOf(url, scheme string) string {
	host := url[len(scheme):]
	if i := strings.IndexAny(host, "/?#"); i >= 0 {
		host = host[:i]
	}
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = host[i+1:]
	}
	if len(host) > 4 && strings.EqualFold(host[:4], "www.") {
		host = host[4:]
	}
	return host
}
