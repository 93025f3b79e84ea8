package markup

import "strings"

// samples are texts that are hard to show while they grow.
var samples = map[string]string{
	"emphasis": "Some **bold**, *italic*, ***both***, ~~gone~~, `code`, __bold__ and _italic_; snake_case_name, 2 * 3" +
		" * 4, a**b**c. **Bold with `code` and *more* in it**, and an open ** star.\n\nA * b and ~20 to 25~ euros.",
	"links": "See [the docs](https://example.com/a_b?c=d&e=f), [one **bold** label](https://example.com), ![a char" +
		"t](https://example.com/x.png), <https://example.com/auto> and https://example.com/bare_url. [not a link] and [x](relative).",
	"lists": "Steps:\n\n1. First **thing**\n2. Second\n   - inner one\n   - inner `two`\n10. Tenth\n\n- [x] done\n" +
		"- [ ] open\n- > 25\n\n* star\n* list\n",
	"code": "Before\n\n```go\nfunc main() {\n\tfmt.Println(\"**not bold** <b>\")\n}\n```\n\nAfter `` a ` b `` and" +
		" ```inline```.\n\n~~~~\n```\nnested\n```\n~~~~\n\n    indented code\n",
	"table": "Intro\n\n| name | value |\n|------|:-----:|\n| **a** | `1` |\n| b | 2 \\| 3 |\n\nAfter | the table.\n",
	"quote": "> quoted **text**\n> second line\n>\n> > nested\n\nText\n\n> - item\n> - item\n>\n> ```\n> code\n> ```\n",
	"html": "Text <b>html</b> and <script>alert(1)</script> a < b && c > d &amp; &lt;x&gt; &copy; &unknown; \\*es" +
		"caped\\* \\_x\\_\n\n<div>\nblock\n</div>\n\nEnd\n",
	"headings":  "# One\n\nText\n\nTitle\n=====\n\nSub\n---\n\n### Three **bold**\n\n---\n\nafter\n",
	"unicode":   "你好，**世界**。今天天气很好！👨‍👩‍👧‍👦 family, 🇩🇪🇫🇷 flags, é combining, עברית **מודגש** and العربية *مائل*.\n\n**加粗**文字和`代码`。",
	"long":      strings.Repeat("A sentence with **bold words** and `code` in it. ", 120) + "\n\n" + strings.Repeat("另一个句子，没有空格。", 200),
	"longcode":  "```python\n" + strings.Repeat("print('a line of code')\n", 500) + "```\n\nThe end.",
	"longtable": "| a | b |\n|---|---|\n" + strings.Repeat("| cell **one** | cell two |\n", 200),
	"longlist":  strings.Repeat("1. An item with some text that is long enough\n   1. an inner item\n", 150),
	"40k": strings.Repeat("## Heading\n\nA paragraph with **bold**, `code` and [a link](https://example.com/a_b)"+
		".\n\n- item 😀\n- 你好\n\n```go\nx := 1\n```\n\n", 320),
	"broken":     "**a\n\nb** [x](y\n\n`c\n\n~~d\n\n```",
	"surrogates": strings.Repeat("😀👍🏽", 600),
}
