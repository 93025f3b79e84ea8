package telegram

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// The limits of rich messages (core.telegram.org/bots/api#rich-messages).
const (
	maxRich    = 32_768 // characters of the text
	maxBlocks  = 500
	maxLevels  = 16
	maxColumns = 20
)

// richBlocks and richSpans are the elements of rich HTML that contain text. Media are left out: a draft can't upload any.
var (
	richBlocks = []string{"p", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "footer", "hr", "ul", "ol", "li", "blockquote", "aside", "table", "tr", "details", "tg-math-block"}
	richSpans  = []string{
		"a", "b", "strong", "i", "em", "u", "ins", "s", "strike", "del", "code", "mark", "sub", "sup", "tg-spoiler", "tg-math", "br", "td", "th", "summary", "cite",
	}
)

// voidTags are the elements without content, which HTML writes without an end.
var voidTags = strings.NewReplacer("<br>", "<br/>", "<hr>", "<hr/>")

// rich returns the text of a request with a rich message. Its entities are not kept.
func (c *call) rich() (string, []Entity, *failure) {
	var message struct {
		HTML     *string `json:"html"`
		Markdown *string `json:"markdown"`
		Blocks   []any   `json:"blocks"`
	}
	if err := c.object("rich_message", &message); err != nil {
		return "", nil, badRequest("can't parse rich message: %v", err)
	}
	if message.HTML == nil || message.Markdown != nil || message.Blocks != nil {
		return "", nil, badRequest("rich message must have html, and neither markdown nor blocks")
	}
	text, err := readRich(*message.HTML)
	if err != nil {
		return "", nil, badRequest("can't parse rich message: %v", err)
	}
	return text, nil, nil
}

// readRich returns the visible text of rich HTML.
func readRich(source string) (string, error) {
	var text strings.Builder
	blocks, columns := 0, 0
	levels := []string{}
	d := xml.NewDecoder(strings.NewReader("<x>" + voidTags.Replace(source) + "</x>"))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
		switch t := token.(type) {
		case xml.CharData:
			text.Write(t)
		case xml.StartElement:
			name := t.Name.Local
			levels = append(levels, name)
			switch {
			case len(levels) == 1: // the element around all
				continue
			case len(levels) > maxLevels+1:
				return "", errors.New("too many levels")
			case slices.Contains(richBlocks, name):
				if blocks++; blocks > maxBlocks {
					return "", errors.New("too many blocks")
				}
				columns = 0
				newLine(&text)
			case !slices.Contains(richSpans, name):
				return "", errors.New("unsupported start tag " + name)
			case name == "br":
				text.WriteByte('\n')
			case name == "td" || name == "th":
				if columns++; columns > maxColumns {
					return "", errors.New("too many columns")
				}
			}
		case xml.EndElement:
			levels = levels[:len(levels)-1]
		default:
			return "", errors.New("unsupported markup")
		}
	}
	if utf8.RuneCountInString(text.String()) > maxRich {
		return "", errors.New("rich message is too long")
	}
	return strings.TrimSpace(text.String()), nil
}

// newLine ends the current line, if it has text.
func newLine(b *strings.Builder) {
	if s := b.String(); s != "" && !strings.HasSuffix(s, "\n") {
		b.WriteByte('\n')
	}
}
