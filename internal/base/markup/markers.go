package markup

import (
	"strings"
	"unicode/utf8"
)

// markers is a format whose spans are markers in the text.
type markers struct {
	sheet sheet
	pairs map[kind]string
	// escape escapes a part of a line, between the characters before and after it. Before is a line
	// end where Markdown reads blocks.
	escape func(line string, before, after rune) string
	// inCode escapes code. If it is nil, code is written as it is.
	inCode func(string) string
	// link writes a link whose label is escaped already.
	link func(label, url string) string
	// bare writes a URL that is its own label. If it is nil, the URL is written as it is.
	bare func(url string) string
	// words reports that markers count only at the edges of words, and that no sequence of
	// backticks contains others.
	words bool
}

// write writes a layout with markers.
func (m markers) write(n *node) Message {
	l := lay(n, m.sheet)
	e := encoder{markers: m, layout: l, last: '\n'}
	e.encode(0, len(l.text), l.spans)
	return Message{Text: e.b.String()}
}

// An encoder writes one layout. Markers don't span lines: they are closed before a line end and
// opened again in front of the next text, which leaves the prefix of a quote outside.
type encoder struct {
	markers
	layout   layout
	b        strings.Builder
	open     []string // the markers around the current position, outermost first
	written  int      // how many of them are open in the output
	last     rune     // the last character of the output; a line end behind a prefix as well
	isClosed bool     // the output ends with a marker that closes
	isLabel  bool     // it writes the label of a link, which can't contain another one
}

// encode writes a range of the text with its spans.
func (e *encoder) encode(from, to int, spans []span) {
	for len(spans) > 0 {
		s := spans[0]
		e.plain(from, s.start)
		// Spans are nested properly, so those that begin within the first one end within it.
		inner := 1
		for inner < len(spans) && spans[inner].start < s.end {
			inner++
		}
		e.span(s, spans[1:inner])
		from, spans = s.end, spans[inner:]
	}
	e.plain(from, to)
}

// span writes one span with those in it. A span whose markers the platform would not read as
// markers is written without them: plain text is better than text with stray markers.
func (e *encoder) span(s span, inner []span) {
	content := e.layout.text[s.start:s.end]
	marker := e.pairs[s.kind]
	switch s.kind {
	case prefix:
		e.b.WriteString(content)
		e.last = '\n'
	case code:
		e.fence(marker, s, content)
	case codeSpan:
		e.codeSpan(marker, s, content)
	case link:
		e.linkSpan(s, inner, content)
	default:
		// Without a marker, the spans within may still have theirs.
		if marker == "" || !e.atEdges(s) {
			e.encode(s.start, s.end, inner)
			return
		}
		e.open = append(e.open, marker)
		e.encode(s.start, s.end, inner)
		// If nothing was written behind a line end, the marker was not opened again.
		if e.written == len(e.open) {
			e.b.WriteString(marker)
			e.written--
			e.last, e.isClosed = rune(marker[0]), true
		}
		e.open = e.open[:len(e.open)-1]
	}
}

// begin opens the markers that the output lacks.
func (e *encoder) begin() {
	for ; e.written < len(e.open); e.written++ {
		if e.isClosed && !e.words {
			e.b.WriteString(joiner) // two runs of markers would be read as one
			e.isClosed = false
		}
		e.b.WriteString(e.open[e.written])
		e.last = rune(e.open[e.written][0])
	}
}

// raw writes markup or escaped text.
func (e *encoder) raw(s string) {
	if s == "" {
		return
	}
	e.begin()
	e.b.WriteString(s)
	e.last, _ = utf8.DecodeLastRuneInString(s)
	e.isClosed = false
}

// plain writes text outside of code, line by line.
func (e *encoder) plain(from, to int) {
	if from >= to {
		return
	}
	after := '*' // a marker
	if to == len(e.layout.text) {
		after = 0
	}
	lines := strings.Split(e.layout.text[from:to], "\n")
	for i, line := range lines {
		if i > 0 {
			e.newLine()
		}
		next := after
		if i < len(lines)-1 {
			line, next = strings.TrimRight(line, " \t"), '\n'
		}
		if e.written < len(e.open) {
			// White space next to a marker would keep it from being one.
			text := strings.TrimLeft(line, " \t")
			e.b.WriteString(line[:len(line)-len(text)])
			line = text
		}
		if line == "" {
			continue
		}
		// A marker that begin is about to write will be next to the text, not what precedes it now.
		if e.escape != nil {
			before := e.last
			if e.written < len(e.open) && before != '\n' {
				before = '*'
			}
			line = e.escape(line, before, next)
		}
		if r, _ := utf8.DecodeRuneInString(line); e.isClosed && !e.words && strings.ContainsRune("*_~`", r) {
			line = joiner + line
		}
		e.raw(line)
	}
}

func (e *encoder) newLine() {
	for ; e.written > 0; e.written-- {
		e.b.WriteString(e.open[e.written-1])
	}
	e.b.WriteByte('\n')
	e.last, e.isClosed = '\n', false
}

// fence writes a code block. Its markers are on lines with the same prefix as its content.
func (e *encoder) fence(marker string, s span, content string) {
	if e.inCode != nil {
		content = e.inCode(content)
	}
	if marker == "" {
		e.raw(content)
		return
	}
	// A zero-width space keeps backticks in the code from closing its fence.
	for strings.Contains(content, "```") {
		content = strings.ReplaceAll(content, "```", "``"+joiner+"`")
	}
	// A language that contains a backtick would end the fence, and one with a space isn't a language.
	language := s.value
	if e.sheet.headings == 0 || strings.ContainsAny(language, "` ") {
		language = "" // only platforms that read Markdown know languages
	}
	e.raw(marker + language + "\n" + s.prefix + content + "\n" + s.prefix + marker)
}

// codeSpan writes code within a line. Platforms that read Markdown allow a longer marker around
// code that contains backticks.
func (e *encoder) codeSpan(marker string, s span, content string) {
	switch {
	case marker == "" || e.words && (strings.Contains(content, "`") || !e.atEdges(s)):
		e.plain(s.start, s.end)
		return
	case strings.Contains(content, "`"):
		marker = "``"
		// Three backticks begin a code block on Discord, even within a line.
		for strings.Contains(content, "``") {
			content = strings.ReplaceAll(content, "``", "`"+joiner+"`")
		}
		if content[0] == '`' || content[len(content)-1] == '`' {
			content = " " + content + " "
		}
	}
	if e.inCode != nil {
		content = e.inCode(content)
	}
	if e.last == '`' {
		e.raw(joiner)
	}
	e.raw(marker + content + marker)
	e.isClosed = true
}

func (e *encoder) linkSpan(s span, inner []span, content string) {
	switch {
	case !isAbsolute(s.value) || strings.Contains(content, "\n") || e.isLabel:
		e.encode(s.start, s.end, inner)
	case s.value == content && e.bare != nil:
		e.raw(e.bare(content))
	case s.value == content:
		e.raw(content)
	default:
		label := encoder{markers: e.markers, layout: e.layout, last: '[', isLabel: true}
		label.encode(s.start, s.end, inner)
		e.raw(e.link(label.b.String(), s.value))
	}
}

// atEdges reports whether the platform would read the markers of a span as markers.
func (e *encoder) atEdges(s span) bool {
	content := e.layout.text[s.start:s.end]
	before, _ := utf8.DecodeLastRuneInString(e.layout.text[:s.start])
	after, _ := utf8.DecodeRuneInString(e.layout.text[s.end:])
	if e.words {
		return !isWord(before) && !isWord(after) && !strings.Contains(content, "\n")
	}
	// CommonMark, section 6.2: punctuation within the markers demands that no letter is next to
	// them outside.
	if len(e.open) > 0 && (isWord(before) || isWord(after)) {
		return false // within a word, a marker may both open and close, also the ones around it
	}
	first, _ := utf8.DecodeRuneInString(content)
	last, _ := utf8.DecodeLastRuneInString(content)
	return (!isPunct(first) || !isWord(before)) && (!isPunct(last) || !isWord(after))
}
