package markup

import (
	"os"
	"strings"

	"pgregory.net/rapid"
)

// inlines are pieces of a paragraph that are hard to show while they grow. Each is complete, and
// some have markers that stay text.
var inlines = []string{
	"plain words", "**bold**", "*italic*", "***both***", "~~struck~~", "__strong__", "_slanted_", "`code`", "`` a ` b ``",
	"``` `` ```",
	"**bold with `code` and *more* in it**", "*a **b** c*", "**a *b***", "_a __b__ c_", "~~a **b** c~~", "snake_case_name",
	"2 * 3 * 4",
	"a**b**c", "**你好**世界", "**加粗。**文字", "*强调*，", "「**引用**」", "👨‍👩‍👧‍👦", "🇩🇪🇫🇷", "👍🏽", "e\u0301", "**👩🏿‍🚀 crew**",
	"עברית **מודגש**", "العربية *مائل*",
	"[docs](https://example.com/a_b?c=d&e=f)", "[wiki](https://example.com/a_(b)_c)", "[**bold** label](https://example.com)",
	"[a](<https://example.com/x y>)",
	"[titled](https://example.com \"a title\")", "[`code`](https://example.com)", "![a chart](https://example.com/x.png)",
	"[![badge](https://example.com/b.svg)](https://example.com)", "<https://example.com/auto>", "https://example.com/bare_url",
	"www.example.com", "<me@example.com>",
	"[not a link]", "[x](relative)", "[]()", "[x]", "<b>html</b>", "<br/>", "a < b && c > d", "<script>alert(1)</script>",
	"&amp; &lt;x&gt; &copy; &unknown; &#42;",
	`\*escaped\*`, `\_x\_`, "\\`tick\\`", `\[x\]\(y\)`, `\\`, "20~25", "~20 to 25~ euros", "an open ** star", "5 * 6",
	"| pipes |", "a | b", "!", "#tag", "1. not a list",
	"> not a quote", "<@U123> <!channel>", "@everyone", "||hidden||", "C:\\dir\\file", "$x_1 * y_2$", "{\"a\": [1, 2]}",
	"a*b*c", "*x*y", "\u200b", "…", "***", "~~~x~~~",
}

// wholes are blocks that are hard to show while they grow.
var wholes = []string{
	"# Heading with **bold**", "### Closed ###", "Title\n=====", "Sub *title*\n---", "---", "* * *",
	"> quoted **text**\n> second line\nlazy line",
	"> > nested\n> text", "> - item\n> - item\n>\n> ```\n> code\n> ```",
	"```go\nfunc main() {\n\tfmt.Println(\"**not bold** <b>\")\n}\n```",
	"````md\n```go\nx\n```\n````", "~~~~\n```\nnested\n```\n~~~~", "    indented **code**\n    more", "```\n\n\n```",
	"```js title=\"a\"\nlet a = `x`;\n```",
	"| name | value |\n|------|:-----:|\n| **a** | `1` |\n| b | 2 \\| 3 |",
	"| 名 | 值 |\n|---|---|\n| 你好 | [x](https://example.com) |", "| a |\n|---|", "| no table |\n| at all |",
	"- one\n- two\n  - inner **a**\n  - inner `b`\n    1. deep\n    2. deeper\n- three",
	"1. a\n1. b\n   1. c\n\n   para\n2. d", "10. ten\n11. eleven", "* [x] done\n* [ ] open\n* > 25",
	"- a\n\n  ```sh\n  ls *\n  ```\n\n- b", "+ x\n+\n+ y", "- - nested", "1) paren\n2) paren", "<div>\nblock **raw**\n</div>",
	"<!-- comment -->", "<details><summary>S</summary>\n\ntext\n\n</details>",
	"line one  \nline two\\\nline three", "**a\n\nb**", "`c\n\nnext", "~~d", "*e", "[x](y", "![z](", "***f", "__g", "<h", "&am",
}

// tails are ends of a text that leave something open, as when an agent is stopped.
var tails = []string{
	"", "\n", "\n\n", "**", "`", "```", "```go\nx **y", "~~~\n**", "- ", "> ", "\n| a | b |", "\n| a |\n|-", "[a](",
	"![a](http", "**bold `code", "*it **bo", "~~s", "\\", "&#", "<a hr", "1.", "#", "你",
}

// text draws a hard text of a few blocks.
func drawText(t *rapid.T) string {
	blocks := rapid.SliceOfN(rapid.Custom(drawBlock), 1, 5).Draw(t, "blocks")
	between := rapid.SampledFrom([]string{"\n\n", "\n\n", "\n", "\n\n\n"}).Draw(t, "between")
	return strings.Join(blocks, between) + rapid.SampledFrom(tails).Draw(t, "end")
}

func drawBlock(t *rapid.T) string {
	if rapid.IntRange(0, 2).Draw(t, "kind") == 0 {
		return rapid.SampledFrom(wholes).Draw(t, "block")
	}
	parts := rapid.SliceOfN(rapid.SampledFrom(inlines), 1, 6).Draw(t, "inlines")
	line := strings.Join(parts, rapid.SampledFrom([]string{" ", " ", "\n", ", "}).Draw(t, "separator"))
	prefix := rapid.SampledFrom([]string{"", "", "", "- ", "> ", "1. ", "## ", "- [ ] "}).Draw(t, "prefix")
	return prefix + line
}

// amount returns how many prefixes of hard texts a property is checked for.
func amount() int {
	if os.Getenv("LEAT_FULL") != "" {
		return 10_000
	}
	return 1000
}
