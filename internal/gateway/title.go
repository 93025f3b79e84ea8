// Titles that are made of a conversation's first message, until a person sets another one.

package gateway

import (
	"strings"
	"unicode"

	"github.com/leat-dev/leat/event"
)

const (
	// maxMadeTitle limits a title that is made from a message, in characters, so that it fits on one line of a list.
	maxMadeTitle = 60
	// maxTitled is how much of a message is read for its title, in bytes.
	maxTitled = 4 << 10
)

// marks removes the marks of Markdown inside a line.
var marks = strings.NewReplacer("**", "", "__", "", "~~", "", "`", "")

// TitleOf returns a title made from a message: its first line with text, without Markdown, cut between two words. It is empty
// if the message has no text.
func TitleOf(text string) string {
	if len(text) > maxTitled {
		text = strings.ToValidUTF8(text[:maxTitled], "")
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			continue
		}
		line = strings.Join(strings.FieldsFunc(marks.Replace(line), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
		line = strings.TrimRight(strings.TrimLeft(line, "#>*_-+~| "), "*_~|# ")
		if strings.ContainsFunc(line, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsSymbol(r) }) {
			return shorten(line)
		}
	}
	return ""
}

// shorten cuts a line to maxMadeTitle characters, between two words if one ends in its second half.
func shorten(line string) string {
	r := []rune(line)
	if len(r) <= maxMadeTitle {
		return line
	}
	end := maxMadeTitle - 1 // leaves room for the ellipsis
	for i := end; i > end/2; i-- {
		if r[i] == ' ' {
			end = i
			break
		}
	}
	return strings.TrimRight(string(r[:end]), " ,;:.–-") + "…"
}

// titleOf returns the title that the first text of some parts makes, or "".
func titleOf(parts []event.Part) string {
	for _, part := range parts {
		if part.Kind == event.KindText {
			if title := TitleOf(part.Text); title != "" {
				return title
			}
		}
	}
	return ""
}

// firstTitle returns the title that the first message of a user makes, or "".
func firstTitle(messages []event.Event) string {
	for i := range messages {
		if b := messages[i].Get(); b.Role == event.User {
			if title := titleOf(b.Parts); title != "" {
				return title
			}
		}
	}
	return ""
}
