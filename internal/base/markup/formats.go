package markup

import (
	"encoding/json"
	"unicode/utf8"
)

// A Message is a part of a document in the form of one platform.
type Message struct {
	// Text is the platform's text. It is plain for Telegram, whose formats are Entities or HTML.
	Text string
	// Entities are ranges of Text, for Telegram. They are sorted, nested properly, and never within
	// code.
	Entities []Entity
	// HTML is the formatted form, for Matrix and for Telegram's HTML and rich messages.
	HTML string
}

// A Format writes documents for one platform, and knows the unit of the platform's limit.
type Format struct {
	write func(*node) Message
	size  func(Message) int
}

// The platforms' formats. A comment names the unit of the limit that Next takes. Where a platform
// speaks of characters without a definition, UTF-16 code units are counted: no other count of the
// same text is larger, except bytes.
var (
	// Telegram is plain text with entities, in UTF-16 units. The platform accepts 4,096.
	Telegram = Format{telegram, utf16Size}
	// TelegramHTML is the same text in parse mode HTML. The limit counts what remains after the
	// tags are parsed, as the platform does.
	TelegramHTML = Format{telegramHTML, utf16Size}
	// TelegramRich is the HTML of rich messages, which have headings, lists and tables. The limit
	// counts the text without tags, in characters; the platform accepts 32,768. Text is about what
	// is visible.
	TelegramRich = Format{telegramRich, func(m Message) int { return utf8.RuneCountInString(m.Text) }}
	// Slack is mrkdwn, for the text of a message, in characters. The platform advises 4,000.
	Slack = Format{slack.write, func(m Message) int { return utf8.RuneCountInString(m.Text) }}
	// SlackMarkdown is the standard Markdown of markdown_text and of the markdown block, in
	// characters. The platform accepts 12,000.
	SlackMarkdown = Format{slackMarkdown.write, func(m Message) int { return utf8.RuneCountInString(m.Text) }}
	// Discord is the platform's Markdown, in UTF-16 units. The platform accepts 2,000.
	Discord = Format{discord.write, utf16Size}
	// WhatsApp is the platform's markup, in UTF-16 units. The platform accepts 4,096.
	WhatsApp = Format{whatsApp.write, utf16Size}
	// Feishu is the Markdown of a card (JSON 2.0), in bytes of the JSON string. The platform
	// accepts 30 KB for the whole card.
	Feishu = Format{feishu.write, func(m Message) int { return jsonLen(m.Text) }}
	// WeCom is the Markdown of a stream message, in bytes. The platform accepts 20,480.
	WeCom = Format{weCom.write, func(m Message) int { return len(m.Text) }}
	// Plain is text without markup, in bytes.
	Plain = Format{plainText.write, func(m Message) int { return len(m.Text) }}
	// Matrix is org.matrix.custom.html with Markdown as the text. Its limit is in bytes of the
	// event's JSON, of which the platform accepts 65,536. Text and HTML count twice: an edit
	// contains both two times, and every message may be edited.
	Matrix = Format{matrix, func(m Message) int { return 2 * (jsonLen(m.Text) + jsonLen(m.HTML)) }}
)

// Render returns the range from from to to of a document's source. Its Text is empty if nothing of
// the range is visible.
func (d *Document) Render(from, to int, f Format) Message {
	n := d.root.within(from, to)
	if n == nil {
		return Message{}
	}
	return f.write(n)
}

// utf16Size returns the size of a message for platforms that count its text in UTF-16 units.
func utf16Size(m Message) int { return utf16Len(m.Text) }

// utf16Len returns the length of a text in UTF-16 code units.
func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r >= 0x10000 {
			n++
		}
	}
	return n
}

// jsonLen returns the length of a text as a JSON string, as Go writes it: with six bytes for an
// angle bracket, which is never less than what a server counts.
func jsonLen(s string) int {
	b, err := json.Marshal(s)
	if err != nil {
		return len(s) // can't happen: every string has a JSON form
	}
	return len(b)
}
