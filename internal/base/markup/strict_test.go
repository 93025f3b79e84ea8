package markup

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"unicode/utf16"
)

// A reader reads a message as the platform does. It returns what a person sees, or an error if the
// platform would refuse the message.
type reader func(m Message) (string, error)

// readers are independent of the writers: they know the platforms' rules only.
var readers = map[string]reader{
	"telegram": readEntities, "telegram-html": readTelegramHTML, "slack": readSlack, "whatsapp": readWhatsApp, "matrix": readMatrix,
	"telegram-rich":  readMatrix, // its elements are among those of rich messages
	"slack-markdown": readMarkdown, "feishu": readMarkdown, "wecom": readMarkdown,
	"discord": func(m Message) (string, error) {
		shown, err := readMarkdown(Message{Text: strings.ReplaceAll(m.Text, "&", "\uE000")}) // it reads no character references
		return strings.ReplaceAll(shown, "\uE000", "&"), err
	},
	"plain": func(m Message) (string, error) { return m.Text, nil },
}

// readEntities checks entities by the rules of core.telegram.org/bots/api#messageentity.
func readEntities(m Message) (string, error) {
	units := utf16.Encode([]rune(m.Text))
	var open []Entity
	for i, e := range m.Entities {
		end := e.Offset + e.Length
		if e.Offset < 0 || e.Length <= 0 || end > len(units) {
			return "", fmt.Errorf("%v is not in the text", e)
		}
		if isLow(units[e.Offset]) || end < len(units) && isLow(units[end]) {
			return "", fmt.Errorf("%v cuts a surrogate pair", e)
		}
		if content := string(utf16.Decode(units[e.Offset:end])); strings.TrimSpace(content) == "" {
			return "", fmt.Errorf("%v is blank", e)
		}
		if i > 0 && m.Entities[i-1].Offset > e.Offset {
			return "", fmt.Errorf("%v is not sorted", e)
		}
		for len(open) > 0 && open[len(open)-1].Offset+open[len(open)-1].Length <= e.Offset {
			open = open[:len(open)-1]
		}
		for _, o := range open {
			isCode := e.Type == "code" || e.Type == "pre"
			switch {
			case end > o.Offset+o.Length:
				return "", fmt.Errorf("%v overlaps %v", e, o)
			case o.Type == e.Type, o.Type == "code", o.Type == "pre", isCode && o.Type != "blockquote":
				return "", fmt.Errorf("%v is within %v", e, o)
			}
		}
		if (e.URL != "") != (e.Type == "text_link") || e.Language != "" && e.Type != "pre" {
			return "", fmt.Errorf("%v has the wrong attributes", e)
		}
		open = append(open, e)
	}
	return m.Text, nil
}

// isLow reports whether a code unit is the second one of a surrogate pair.
func isLow(unit uint16) bool { return unit >= 0xDC00 && unit <= 0xDFFF }

var tagOrText = regexp.MustCompile(`^(?:<(/?)([a-z0-9]+)((?: [a-z-]+="[^"<>]*")*)>|([^<>&]+)|(&(?:amp|lt|gt|quot|#34|#39);))`)

// readTags reads tags with the attributes that a platform allows, by element.
func readTags(s string, allowed map[string]string, onTag func(name, attributes string, isEnd bool)) (string, error) {
	var shown strings.Builder
	var open []string
	for s != "" {
		m := tagOrText.FindStringSubmatch(s)
		if m == nil {
			return "", fmt.Errorf("not HTML: %.60q", s)
		}
		s = s[len(m[0]):]
		name := m[2]
		attribute, isAllowed := allowed[name]
		switch {
		case name == "":
			shown.WriteString(html.UnescapeString(m[0]))
			continue
		case !isAllowed, m[3] != "" && (attribute == "" || !strings.HasPrefix(m[3], " "+attribute)):
			return "", fmt.Errorf("the tag %s isn't allowed", m[0])
		case m[1] == "/":
			if len(open) == 0 || open[len(open)-1] != name {
				return "", fmt.Errorf("%s closes %v", m[0], open)
			}
			open = open[:len(open)-1]
		case name != "br" && name != "hr":
			open = append(open, name)
		}
		if onTag != nil {
			onTag(name, m[3], m[1] == "/")
		}
	}
	if len(open) > 0 {
		return "", fmt.Errorf("%v stay open", open)
	}
	return shown.String(), nil
}

func readTelegramHTML(m Message) (string, error) {
	shown, err := readTags(m.HTML, map[string]string{
		"b": "", "i": "", "s": "", "pre": "", "code": `class="language-`, "a": `href="`, "blockquote": "",
	}, nil)
	if err == nil && shown != m.Text {
		err = fmt.Errorf("the tags hold %q, the text is %q", shown, m.Text)
	}
	return shown, err
}

// readMatrix checks the tags of the Matrix specification, m.room.message.
func readMatrix(m Message) (string, error) {
	if m.Text == "" && m.HTML != "" {
		return "", fmt.Errorf("no text for %q", m.HTML)
	}
	allowed := map[string]string{"code": `class="language-`, "a": `href="`, "ol": `start="`}
	for _, name := range strings.Fields("del h1 h2 h3 h4 h5 h6 blockquote p ul li strong em hr br table tr th td pre") {
		allowed[name] = ""
	}
	return readTags(m.HTML, allowed, nil)
}

// readMarkdown reads Markdown as CommonMark does, with strikethrough.
func readMarkdown(m Message) (string, error) {
	d := Parse(m.Text)
	for n := range d.root.all(0) {
		if n.kind == table || n.kind == image {
			return "", fmt.Errorf("a table or an image that the writer didn't write: %q", m.Text)
		}
	}
	return plain(d.root), nil
}
