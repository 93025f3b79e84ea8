package markup

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// joiner is a zero-width space. After a marker it keeps platforms without an escape from reading
// the marker: they demand a visible character next to it. It stays invisible, and a marker that is
// copied is still the same character.
const joiner = "\u200b"

// chatEscapes are the three characters of Slack's mrkdwn and of Telegram's HTML that have an escape
// (docs.slack.dev, "Formatting message text"; core.telegram.org/bots/api#html-style).
var chatEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// escapeSlack escapes a line for mrkdwn, which has no escape for its markers.
func escapeSlack(line string, before, after rune) string {
	return chatEscapes.Replace(escapeWords(line, before, after))
}

// escapeWords breaks the markers of text for platforms that read them at the edges of words.
func escapeWords(line string, before, after rune) string {
	if !strings.ContainsAny(line, "*_~`") {
		return line
	}
	var b strings.Builder
	previous := before
	for i, r := range line {
		b.WriteRune(r)
		if strings.ContainsRune("*_~`", r) {
			next := after
			if i+1 < len(line) {
				next, _ = utf8.DecodeRuneInString(line[i+1:])
			}
			// Between two letters, and with white space on both sides, a marker is text. A backtick
			// is one everywhere.
			if r == '`' || (!isWord(previous) || !isWord(next)) && (!isBlank(previous) || !isBlank(next)) {
				b.WriteString(joiner)
			}
		}
		previous = r
	}
	return b.String()
}

// isBlank reports whether a character next to a marker keeps it from being one. 0 is the beginning
// or the end of the text.
func isBlank(r rune) bool { return r == 0 || r == ' ' || r == '\n' || r == '\t' }

// lineStart matches what Markdown reads as a block at the beginning of a line: a heading, a quote,
// a bullet or a number.
var lineStart = regexp.MustCompile(`^([ \t]*)(#{1,6}|-#|>{1,3}|[-+*]|\d{1,9}[.)])([ \t]|$)`)

// underline matches a line that would make a heading of the one above, or a rule.
var underline = regexp.MustCompile(`^[ \t]*(?:=+|-{2,})[ \t]*$`)

// escapeMarkdown escapes a line for Discord, which reads backslashes as CommonMark does, but no
// character references.
func escapeMarkdown(line string, before, after rune) string {
	return backslashes(line, "\\*_~`[]<|", before, after)
}

// escapeWeCom escapes character references as well.
func escapeWeCom(line string, before, after rune) string {
	return backslashes(line, "\\*_~`[]<|&", before, after)
}

// escapeSlackMarkdown escapes a line for markdown_text. Slack reads its own mentions, such as
// <!channel>, in it.
func escapeSlackMarkdown(line string, before, after rune) string {
	return backslashes(chatEscapes.Replace(line), "\\*_~`[]|", before, after)
}

// backslashes escapes the special characters of a line, and what begins a block at its start. More
// backslashes than needed do no harm: every platform drops them in front of punctuation.
func backslashes(line, special string, before, after rune) string {
	var b strings.Builder
	if before == '\n' {
		if loc := lineStart.FindStringSubmatchIndex(line); loc != nil {
			// The last character of the mark gets the backslash: only punctuation can be escaped.
			b.WriteString(line[:loc[5]-1] + `\` + line[loc[5]-1:loc[5]])
			if line[loc[4]] == '#' || line[loc[4]] == '>' {
				b.Reset()
				b.WriteString(line[:loc[4]] + `\` + line[loc[4]:loc[5]])
			}
			before, line = ' ', line[loc[5]:]
		}
	}
	if before == '\n' && underline.MatchString(line) {
		at := strings.IndexAny(line, "=-")
		return line[:at] + `\` + line[at:]
	}
	previous := before
	for i, r := range line {
		if r == ':' && strings.HasPrefix(line[i:], "://") {
			b.WriteByte('\\') // a URL that isn't a link in the source must not begin one, which would contain the backslashes
		}
		if strings.ContainsRune(special, r) && (r != '_' || !isWord(previous) || !isWord(following(line, i+1, after))) {
			// Within a word an underscore is text, and names such as read_file stay readable.
			b.WriteByte('\\')
		}
		b.WriteRune(r)
		previous = r
	}
	return b.String()
}

// following returns the character at a position of a line, or after if the line ends there.
func following(line string, at int, after rune) rune {
	if at >= len(line) {
		return after
	}
	r, _ := utf8.DecodeRuneInString(line[at:])
	return r
}

// feishuEscapes are the references that the card's Markdown reads for its own characters
// (open.feishu.cn, "Rich text", special characters).
var feishuEscapes = strings.NewReplacer(
	"&", "&#38;", "<", "&#60;", ">", "&#62;", "*", "&#42;", "~", "&#126;", "`", "&#96;", "_", "&#95;",
	"[", "&#91;", "]", "&#93;", "\\", "&#92;", "$", "&#36;", "|", "&#124;",
	"://", "&#58;//", // a URL that isn't a link in the source would contain the references behind it
)

// escapeFeishu escapes a line for a card.
func escapeFeishu(line string, before, _ rune) string {
	mark := ""
	if before == '\n' && underline.MatchString(line) {
		at := strings.IndexAny(line, "=-")
		return line[:at] + "&#" + feishuCode(line[at]) + ";" + line[at+1:]
	}
	if before == '\n' {
		if loc := lineStart.FindStringSubmatchIndex(line); loc != nil {
			end := loc[5] - 1
			mark, line = line[:end]+"&#"+feishuCode(line[end])+";", line[end+1:]
		}
	}
	return mark + feishuEscapes.Replace(line)
}

// feishuCode returns the number of the reference for a mark at the beginning of a line.
func feishuCode(c byte) string {
	return map[byte]string{'#': "35", '>': "62", '-': "45", '+': "43", '*': "42", '=': "61", '.': "46", ')': "41"}[c]
}

// isWord reports whether a character is a part of a word, next to which markers are text.
func isWord(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
