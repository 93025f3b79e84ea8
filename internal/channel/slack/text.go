package slack

import (
	"strings"
	"unicode"
)

// withoutMention removes the first mention of a user from a text in the form of the API. It reports whether there was one. A mention
// may contain the name after a bar. An id that only begins like that of the bot is another user.
func withoutMention(text, user string) (string, bool) {
	for from := 0; ; {
		i := strings.Index(text[from:], "<@"+user)
		if i < 0 || user == "" {
			return text, false
		}
		i += from
		end := strings.IndexByte(text[i:], '>')
		if end < 0 {
			return text, false
		}
		end += i
		if suffix := text[i+len("<@"+user) : end]; suffix == "" || suffix[0] == '|' {
			before, after := strings.TrimSpace(text[:i]), strings.TrimLeftFunc(text[end+1:], unicode.IsSpace)
			return strings.TrimSpace(before + " " + after), true
		}
		from = end
	}
}

// entities are the characters that the API escapes. Replacing them in one pass doesn't decode a text twice.
var entities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

// plain returns a text as the person has typed it. The API writes links, mentions and channels in angle brackets, and escapes other
// ones. name returns the name of a person, or "". Clients send what a person typed in this form, also in code blocks.
func plain(text string, name func(user string) string) string {
	var b strings.Builder
	for {
		begin := strings.IndexByte(text, '<')
		if begin < 0 {
			break
		}
		length := strings.IndexByte(text[begin:], '>')
		if length < 0 {
			break
		}
		b.WriteString(entities.Replace(text[:begin]))
		b.WriteString(textOfBrackets(text[begin+1:begin+length], name))
		text = text[begin+length+1:]
	}
	b.WriteString(entities.Replace(text))
	return strings.TrimSpace(b.String())
}

// textOfBrackets returns what a person reads for the content of angle brackets. If the label of a link says the same as its address,
// only the address is left.
func textOfBrackets(content string, name func(user string) string) string {
	target, label, hasLabel := strings.Cut(content, "|")
	target, label = entities.Replace(target), entities.Replace(label)
	if target == "" {
		return label
	}
	switch target[0] {
	case '@', '#':
		switch {
		case hasLabel && label != "":
			return target[:1] + label
		case target[0] == '@' && name(target[1:]) != "":
			return "@" + name(target[1:])
		}
		return target
	case '!': // <!here>, <!subteam^S1|@group>, <!date^1^form|text>
		if hasLabel && label != "" {
			return label
		}
		word, _, _ := strings.Cut(target[1:], "^")
		return "@" + word
	}
	address := strings.TrimPrefix(strings.TrimPrefix(target, "mailto:"), "tel:")
	if !hasLabel || label == "" || label == address || label == withoutScheme(address) {
		return address
	}
	return label + " (" + address + ")"
}

// withoutScheme returns an address as clients show it when a person has typed it without a scheme.
func withoutScheme(address string) string {
	_, remainder, hasScheme := strings.Cut(address, "://")
	if !hasScheme {
		return address
	}
	return strings.TrimSuffix(remainder, "/")
}
