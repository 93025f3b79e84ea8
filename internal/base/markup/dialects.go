package markup

import "strings"

// The platforms whose formats are markers in the text.
var (
	// Slack's mrkdwn has no headings, no languages of code and no escape for its markers
	// (docs.slack.dev, "Formatting message text").
	slack = markers{
		sheet:  sheet{bullet: "• "},
		pairs:  map[kind]string{strong: "*", emphasis: "_", strike: "~", codeSpan: "`", code: "```"},
		escape: escapeSlack,
		inCode: chatEscapes.Replace,
		link: func(label, url string) string {
			return "<" + slackURL(url) + "|" + strings.ReplaceAll(label, "|", "¦") + ">"
		},
		bare:  slackURL,
		words: true,
	}
	// Slack's markdown_text is standard Markdown, in which Slack still reads its mentions.
	slackMarkdown = markers{
		sheet:  sheet{bullet: "- ", headings: 6},
		pairs:  markdownPairs,
		escape: escapeSlackMarkdown,
		link:   markdownLink,
		bare:   autoLink,
	}
	// Discord reads Markdown with three levels of headings and without tables.
	discord = markers{
		sheet:  sheet{bullet: "- ", headings: 3},
		pairs:  markdownPairs,
		escape: escapeMarkdown,
		// The angle brackets keep the platform from adding a preview of the page to the message.
		link: func(label, url string) string { return "[" + label + "](<" + markdownURL(url) + ">)" },
		bare: autoLink,
	}
	// WhatsApp has mrkdwn's markers without its links and escapes.
	whatsApp = markers{
		sheet:  sheet{bullet: "- "},
		pairs:  map[kind]string{strong: "*", emphasis: "_", strike: "~", codeSpan: "`", code: "```"},
		escape: escapeWords,
		link:   plainLink,
		words:  true,
	}
	// Feishu's cards read Markdown with HTML-like tags, such as <at>, and numeric references as the
	// escape for all characters (open.feishu.cn, "Rich text component", JSON 2.0).
	feishu = markers{
		sheet:  sheet{bullet: "- ", headings: 6},
		pairs:  markdownPairs,
		escape: escapeFeishu,
		link:   markdownLink,
		bare:   func(url string) string { return markdownLink(feishuEscapes.Replace(url), url) },
	}
	// WeCom's stream messages read standard Markdown.
	weCom = markers{
		sheet:  sheet{bullet: "- ", headings: 6},
		pairs:  markdownPairs,
		escape: escapeWeCom,
		link:   markdownLink,
		bare:   autoLink,
	}
	// Plain text is for LINE, IRC and logs.
	plainText = markers{sheet: sheet{bullet: "- "}, link: plainLink}
)

// markdownPairs are the markers of platforms that read Markdown. Emphasis has asterisks: an
// underscore within a word is text.
var markdownPairs = map[kind]string{strong: "**", emphasis: "*", strike: "~~", codeSpan: "`", code: "```"}

// plainLink writes the address behind the label, for platforms whose links have no labels.
func plainLink(label, url string) string { return label + " (" + url + ")" }

// markdownLink writes a link as CommonMark does. Its address has no parentheses, which would have
// to be balanced.
func markdownLink(label, url string) string { return "[" + label + "](" + markdownURL(url) + ")" }

// autoLink writes a URL in angle brackets, so that the characters behind it don't become a part of
// it.
func autoLink(url string) string { return "<" + url + ">" }

// isAbsolute reports whether a URL is one that chat platforms accept in links.
func isAbsolute(url string) bool {
	scheme, rest, found := strings.Cut(url, ":")
	switch strings.ToLower(scheme) {
	case "http", "https", "tg", "mailto", "tel":
		return found && strings.Trim(rest, "/") != "" && !strings.ContainsFunc(rest, endsURL)
	}
	return false
}

// endsURL reports whether a platform would end a URL at a character, or read it as a part of its
// own markup.
func endsURL(r rune) bool { return r <= ' ' || r == 0x7F || strings.ContainsRune("<>|\"`\\", r) }

// slackURL escapes an address for mrkdwn. The other characters that end one are refused by
// isAbsolute.
func slackURL(url string) string { return strings.ReplaceAll(url, "&", "&amp;") }

// markdownURL escapes the characters that end the destination of a link. Percent signs don't need
// it: they mean the same twice.
var markdownURL = strings.NewReplacer("(", "%28", ")", "%29", "*", "%2A", "~", "%7E").Replace
