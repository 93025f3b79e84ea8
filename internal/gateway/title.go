package gateway

import (
	"strings"
	"unicode"

	"github.com/leat-dev/leat/event"
)

const (
	// maxMadeTitle bounds a title that is made of a message, in characters: what a list shows on one line.
	maxMadeTitle = 60
	// maxTitled is how much of a message is looked at, in bytes.
	maxTitled = 4 << 10
)

// marks are those of Markdown that may stand inside a line.
var marks = strings.NewReplacer("**", "", "__", "", "~~", "", "`", "")

// TitleOf makes a title of a message: the first line that says something, without the marks of Markdown, cut between two
// words. It is empty where nothing is said.
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

// shorten cuts a line to maxMadeTitle characters, between two words where one ends in its second half.
func shorten(line string) string {
	r := []rune(line)
	if len(r) <= maxMadeTitle {
		return line
	}
	end := maxMadeTitle - 1 // one is for the dots
	for i := end; i > end/2; i-- {
		if r[i] == ' ' {
			end = i
			break
		}
	}
	return strings.TrimRight(string(r[:end]), " ,;:.–-") + "…"
}

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

// firstTitle is the title that the first of some messages make.
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
