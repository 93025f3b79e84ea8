package markup

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Message is a part of a document in the form of one platform.
type Message struct {
	// Text is the platform's text. It is plain for Telegram, whose formats are Entities.
	Text string
	// Entities are ranges of Text, for Telegram.
	Entities []Entity
	// HTML is the formatted form, for Matrix and for Telegram's status card.
	HTML string
}

// An Entity is a range of a Telegram message (core.telegram.org/bots/api#messageentity). Offset and Length are in UTF-16 code units.
type Entity struct {
	Type     string `json:"type"`
	Offset   int    `json:"offset"`
	Length   int    `json:"length"`
	URL      string `json:"url,omitempty"`
	Language string `json:"language,omitempty"`
}

// A Format writes documents for one platform, and knows the unit of the platform's limit.
type Format struct {
	write func(*node) Message
	size  func(Message) int
}

// The platforms' formats. The limit of a message counts UTF-16 code units for Telegram, Discord and WhatsApp, characters for Slack, bytes
// for WeCom, Feishu and Matrix. For Matrix it counts the text and its HTML as JSON strings, twice: an edit contains both two times.
var (
	Telegram = Format{telegram, func(m Message) int { return utf16Len(m.Text) }}
	Slack    = Format{slack.write, func(m Message) int { return utf8.RuneCountInString(m.Text) }}
	Discord  = Format{discord.write, func(m Message) int { return utf16Len(m.Text) }}
	WhatsApp = Format{whatsApp.write, func(m Message) int { return utf16Len(m.Text) }}
	Plain    = Format{plainText.write, func(m Message) int { return len(m.Text) }}
	Matrix   = Format{matrix, func(m Message) int { return 2 * (jsonLen(m.Text) + jsonLen(m.HTML)) }}
)

// Render returns the range from from to to of a document's source. A format that is not allowed to be empty gets no message: its Text is "".
func (d *Document) Render(from, to int, f Format) Message {
	n := d.root.within(from, to)
	if n == nil {
		return Message{}
	}
	return f.write(n)
}

func jsonLen(s string) int {
	b, err := json.Marshal(s)
	if err != nil {
		return len(s) // can't happen: every string has a JSON form
	}
	return len(b)
}

func telegram(n *node) Message {
	l := lay(n, sheet{bullet: "• ", quotes: true})
	names := map[kind]string{strong: "bold", emphasis: "italic", strike: "strikethrough", codeSpan: "code", code: "pre", link: "text_link", quote: "blockquote"}
	m := Message{Text: l.text}
	offset, at := 0, 0
	for _, s := range l.spans {
		offset += utf16Len(l.text[at:s.start])
		at = s.start
		content := l.text[s.start:s.end]
		e := Entity{Type: names[s.kind], Offset: offset, Length: utf16Len(content)}
		switch s.kind {
		case link:
			if s.value == content || !isAbsolute(s.value) {
				continue // the platform finds the URL by itself, or refuses it
			}
			e.URL = s.value
		case code:
			e.Language = s.value
		}
		m.Entities = append(m.Entities, e)
	}
	return m
}

// isAbsolute reports whether a URL is one that chat platforms accept in links.
func isAbsolute(url string) bool {
	scheme, rest, found := strings.Cut(url, ":")
	switch strings.ToLower(scheme) {
	case "http", "https", "tg", "mailto", "tel":
		return found && strings.Trim(rest, "/") != "" && !strings.ContainsAny(rest, " \n<>|")
	}
	return false
}

// markers is a format whose spans are markers in the text.
type markers struct {
	sheet  sheet
	pairs  map[kind]string
	escape func(content string, isBOL bool) string
	// link writes a link whose label is already escaped.
	link func(label, url string) string
	// words says that markers count only at the edges of words.
	words bool
}

var (
	slack = markers{
		sheet:  sheet{bullet: "• "},
		pairs:  map[kind]string{strong: "*", emphasis: "_", strike: "~", codeSpan: "`", code: "```"},
		escape: escapeSlack,
		link: func(label, url string) string {
			return "<" + escapeURL(url) + "|" + strings.ReplaceAll(label, "|", "¦") + ">"
		},
		words: true,
	}
	discord = markers{
		sheet:  sheet{bullet: "- ", headings: true},
		pairs:  map[kind]string{strong: "**", emphasis: "*", strike: "~~", codeSpan: "`", code: "```"},
		escape: escapeMarkdown,
		link:   func(label, url string) string { return "[" + label + "](<" + url + ">)" },
	}
	whatsApp = markers{
		sheet: sheet{bullet: "- "},
		pairs: map[kind]string{strong: "*", emphasis: "_", strike: "~", codeSpan: "`", code: "```"},
		link:  plainLink,
		words: true,
	}
	plainText = markers{sheet: sheet{bullet: "- "}, link: plainLink}
)

func plainLink(label, url string) string { return label + " (" + url + ")" }

// write writes a layout with markers. Markers don't span lines: they are closed before a line end and opened again after it.
func (m markers) write(n *node) Message {
	l := lay(n, m.sheet)
	e := encoder{markers: m, layout: l}
	e.encode(0, len(l.text), 0, len(l.spans), nil)
	return Message{Text: e.b.String()}
}

// An encoder writes one layout.
type encoder struct {
	markers
	layout layout
	b      strings.Builder
}

// encode writes a range of the text with the spans from first to last, which lie in it.
func (e *encoder) encode(from, to, first, last int, outer []string) {
	for at := from; ; {
		if first == last {
			e.plain(at, to, outer)
			return
		}
		s := e.layout.spans[first]
		e.plain(at, s.start, outer)
		inner := first + 1
		for inner < last && e.layout.spans[inner].start < s.end {
			inner++
		}
		e.span(s, first+1, inner, outer)
		at, first = s.end, inner
	}
}

func (e *encoder) span(s span, first, last int, outer []string) {
	content := e.layout.text[s.start:s.end]
	marker := e.pairs[s.kind]
	switch s.kind {
	case code:
		e.fence(marker, s.value, content)
	case codeSpan:
		if marker == "" || strings.ContainsAny(content, "`\n") || !e.atWords(s) {
			e.plain(s.start, s.end, outer) // no platform has an escape for a backtick within code
			return
		}
		e.b.WriteString(marker + content + marker)
	case link:
		if s.value == content || !isAbsolute(s.value) || strings.Contains(content, "\n") {
			e.url(s, first, last, outer)
			return
		}
		label := encoder{markers: e.markers, layout: e.layout}
		label.encode(s.start, s.end, first, last, nil)
		e.b.WriteString(e.link(label.b.String(), s.value))
	default:
		if marker == "" || !e.atWords(s) {
			e.encode(s.start, s.end, first, last, outer)
			return
		}
		e.b.WriteString(marker)
		e.encode(s.start, s.end, first, last, append(outer[:len(outer):len(outer)], marker))
		e.b.WriteString(marker)
	}
}

// url writes a link whose text is its URL, or that has none that the platform accepts.
func (e *encoder) url(s span, first, last int, outer []string) {
	if s.value == e.layout.text[s.start:s.end] && isAbsolute(s.value) {
		e.b.WriteString(s.value)
		return
	}
	e.encode(s.start, s.end, first, last, outer)
}

func (e *encoder) fence(marker, language, content string) {
	if marker == "" {
		e.b.WriteString(content)
		return
	}
	// A zero-width space keeps backticks in the code from closing its fence.
	content = strings.ReplaceAll(content, "```", "`\u200b`\u200b`")
	if e.headings() {
		e.b.WriteString(marker + language + "\n" + content + "\n" + marker)
		return
	}
	e.b.WriteString(marker + "\n" + content + "\n" + marker)
}

// headings reports whether the platform reads Markdown, and with it the language of a code block.
func (e *encoder) headings() bool { return e.sheet.headings }

// plain writes text outside of code, line by line.
func (e *encoder) plain(from, to int, outer []string) {
	for i, line := range strings.Split(e.layout.text[from:to], "\n") {
		if i > 0 {
			for j := len(outer) - 1; j >= 0; j-- {
				e.b.WriteString(outer[j])
			}
			e.b.WriteByte('\n')
			for _, m := range outer {
				e.b.WriteString(m)
			}
		}
		if e.escape != nil {
			isBOL := i > 0 || from == 0 || e.layout.text[from-1] == '\n'
			line = e.escape(line, isBOL)
		}
		e.b.WriteString(line)
	}
}

// atWords reports whether a platform that reads markers only at the edges of words would read those of a span.
func (e *encoder) atWords(s span) bool {
	if !e.words {
		return true
	}
	before, _ := utf8.DecodeLastRuneInString(e.layout.text[:s.start])
	after, _ := utf8.DecodeRuneInString(e.layout.text[s.end:])
	return !isWord(before) && !isWord(after) && !strings.Contains(e.layout.text[s.start:s.end], "\n")
}

func isWord(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
