package markup

import (
	"encoding/json"
	"testing"
)

const every = "# Title\n\n**bold *both*** ~~gone~~ `a < b` [docs](https://example.com/a_(b)) 2*3 <@U1>\n\n> quote\n>" +
	" 1\\. more\n\n" +
	"3. three\n   - `` x ` y ``\n\n```go\nif a < b {}\n```\n\n| a | b |\n|---|---|\n| 1 | 22 |\n"

// TestFormats shows one text on all platforms.
func TestFormats(t *testing.T) {
	const tableText = "a | b\n--+---\n1 | 22"
	for name, want := range map[string]string{
		"telegram": "Title\n\nbold both gone a < b docs 2*3 <@U1>\n\nquote\n1. more\n\n3. three\n   • x ` y\n\nif a < b {}" +
			"\n\n" + tableText,
		"slack": "*Title*\n\n*bold _both_* ~gone~ `a &lt; b` <https://example.com/a_(b)|docs> 2*3 &lt;@U1&gt;\n\n> quote\n" +
			"> 1. more\n\n" +
			"3. three\n   • x `\u200b y\n\n```\nif a &lt; b {}\n```\n\n```\n" + tableText + "\n```",
		"slack-markdown": "# Title\n\n**bold *both*** ~~gone~~ `a < b` [docs](https://example.com/a_%28b%29) 2\\*3 &lt;@U1" +
			"&gt;\n\n> quote\n> 1\\. more\n\n" +
			"3. three\n   - ``x ` y``\n\n```go\nif a < b {}\n```\n\n```\n" + tableText + "\n```",
		"discord": "# Title\n\n**bold *both*** ~~gone~~ `a < b` [docs](<https://example.com/a_%28b%29>) 2\\*3 \\<@U1>\n\n>" +
			" quote\n> 1\\. more\n\n" +
			"3. three\n   - ``x ` y``\n\n```go\nif a < b {}\n```\n\n```\n" + tableText + "\n```",
		"whatsapp": "*Title*\n\n*bold _both_* ~gone~ `a < b` docs (https://example.com/a_(b)) 2*3 <@U1>\n\n> quote\n> 1. more\n\n" +
			"3. three\n   - x `\u200b y\n\n```\nif a < b {}\n```\n\n```\n" + tableText + "\n```",
		"feishu": "# Title\n\n**bold *both*** ~~gone~~ `a < b` [docs](https://example.com/a_%28b%29) 2&#42;3 &#60;@U1&#62;" +
			"\n\n> quote\n> 1&#46; more\n\n" +
			"3. three\n   - ``x ` y``\n\n```go\nif a < b {}\n```\n\n```\n" + tableText + "\n```",
		"plain": "Title\n\nbold both gone a < b docs (https://example.com/a_(b)) 2*3 <@U1>\n\n> quote\n> 1. more\n\n" +
			"3. three\n   - x ` y\n\nif a < b {}\n\n" + tableText,
	} {
		d := Parse(every)
		if got := d.Render(0, d.Len(), formats[name]).Text; got != want {
			t.Errorf("%s\n%q\nwant\n%q", name, got, want)
		}
	}
}

// TestTelegram checks that entities and HTML have the same spans.
func TestTelegram(t *testing.T) {
	d := Parse("**a `b` c** [`x`](https://example.com) 😀 *i*\n\n> q\n\n```go\nf()\n```")
	m := d.Render(0, d.Len(), Telegram)
	got, err := json.Marshal(m.Entities)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"type":"bold","offset":0,"length":1},{"type":"code","offset":2,"length":1},{"type":"bold","offset":4,"length":1},` +
		`{"type":"text_link","offset":6,"length":1,"url":"https://example.com"},{"type":"italic","offset":11,"length":1},` +
		`{"type":"blockquote","offset":14,"length":1},{"type":"pre","offset":17,"length":3,"language":"go"}]`
	if string(got) != want {
		t.Errorf("%q has the entities\n%s\nwant\n%s", m.Text, got, want)
	}
	html := d.Render(0, d.Len(), TelegramHTML)
	wantHTML := "<b>a</b> <code>b</code> <b>c</b> <a href=\"https://example.com\">x</a> 😀 <i>i</i>\n\n<blockquote>q</bl" +
		"ockquote>\n\n" +
		"<pre><code class=\"language-go\">f()</code></pre>"
	if html.HTML != wantHTML || html.Text != m.Text {
		t.Errorf("HTML %q\nwant %q", html.HTML, wantHTML)
	}
}
