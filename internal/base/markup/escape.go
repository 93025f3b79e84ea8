package markup

import "strings"

var slackEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// escapeSlack escapes the three characters of mrkdwn that have an escape (docs.slack.dev, "Formatting message text"), but not the prefix
// of a quote.
func escapeSlack(line string, isBOL bool) string {
	if !isBOL {
		return slackEscapes.Replace(line)
	}
	rest := strings.TrimLeft(line, "> ")
	return strings.ReplaceAll(line[:len(line)-len(rest)], "> >", ">") + slackEscapes.Replace(rest)
}

// escapeURL escapes the characters that end a URL in mrkdwn.
func escapeURL(url string) string {
	return strings.NewReplacer("&", "&amp;", "<", "%3C", ">", "%3E", "|", "%7C").Replace(url)
}

// escapeMarkdown escapes the characters of text that Discord would read as Markdown.
func escapeMarkdown(line string, isBOL bool) string {
	var b strings.Builder
	for i, r := range line {
		if strings.ContainsRune("\\*_~`|[]<", r) {
			// Within a word an underscore means nothing, and names such as read_file stay readable.
			if r != '_' || i == 0 || i == len(line)-1 || !isAlnum(line[i-1]) || !isAlnum(line[i+1]) {
				b.WriteByte('\\')
			}
		}
		b.WriteRune(r)
	}
	_ = isBOL
	return b.String()
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
