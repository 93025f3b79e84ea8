package web

import (
	"bufio"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

// TestMarkdown renders texts with the widget's own code in Node.
func TestMarkdown(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("SKIPPED: needs Node to run the widget's renderer; on Debian: apt-get install nodejs")
	}
	tests := []struct{ text, nodes string }{
		{
			"a *b* _c_ snake_case_name **d *e* f** ~~g~~ ***h***",
			"<p>a <em>b</em> <em>c</em> snake_case_name <strong>d <em>e</em> f</strong> <del>g</del> <strong><em>h</em></strong></p>",
		},
		{
			"1. one\n2. two\n   - x\n   - y\n\n     more\n3. three\n\nend",
			"<ol><li>one</li><li><p>two</p><ul><li>x</li><li><p>y</p><p>more</p></li></ul></li><li>three</li></ol><p>end</p>",
		},
		{"> q\n> - a\nend", "<blockquote><p>q</p><ul><li>a</li></ul></blockquote><p>end</p>"},
		{"- a\n\n- b\n\nend", "<ul><li>a</li><li>b</li></ul><p>end</p>"},
		{"``a`b`` `<b>` `x", "<p><code>a`b</code> <code>&lt;b></code> `x</p>"},
		{
			"[a [b] c](https://x.y/a_(b)) ![i](https://p/q.png) https://e.f/g).",
			"<p><a https://x.y/a_(b)>a [b] c</a> <a https://p/q.png>i</a> <a https://e.f/g>https://e.f/g</a>).</p>",
		},
		{
			"[x](javascript:alert(1)) [y](data:text/html,1) [z](/relative) [w](JAVASCRIPT:x)",
			"<p><span>x</span> <span>y</span> <span>z</span> <span>w</span></p>",
		},
		{"<script>alert(1)</script>\n<img src=x onerror=alert(1)>", "<p>&lt;script>alert(1)&lt;/script><br></br>&lt;img src=x onerror=alert(1)></p>"},
		{"**not closed and *more", "<p>**not closed and *more</p>"},
		{"```go\n*x*\n```\n~~~\n```\n~~~\nend", "<pre><code>*x*</code></pre><pre><code>```</code></pre><p>end</p>"},
		{"```\nnot closed\n\n# code", "<pre><code>not closed\n\n# code</code></pre>"},
		{"# A #\n### B\n#no", "<h3>A</h3><h5>B</h5><p>#no</p>"},
		{"a\\*b\\\nc\n***\n", "<p>a*b\\<br></br>c</p><hr></hr>"},
		{
			"| a | b |\n|---|:-:|\n| x \\| y | **z** |",
			"<div><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>x | y</td><td><strong>z</strong></td></tr></tbody></table></div>",
		},
		{"text\n- list\n1. other", "<p>text</p><ul><li>list</li></ul><ol><li>other</li></ol>"},
		{"ä😀 **ü**\r\n\r\nend", "<p>ä😀 <strong>ü</strong></p><p>end</p>"},
	}
	// Texts that take long with careless regular expressions. What they become doesn't matter.
	var hostile []string
	for _, unit := range []string{
		"*", "*a", "**a ", "_a", "[", "[a](", "![", "`", "`a``", ">", "#", "# ", "- ", "-", "|", "|-", "https://a.b/", "\\", "[\\", " ", "1. ", "~", "<",
	} {
		text := strings.Repeat(unit, 50_000/len(unit))
		hostile = append(hostile, text, "# "+text+"x", "a|b\n-|-\n"+text+"x")
	}
	var list strings.Builder
	for i := range 500 {
		list.WriteString(strings.Repeat("  ", i) + "- x\n")
	}
	hostile = append(hostile, list.String())
	for _, text := range hostile {
		tests = append(tests, struct{ text, nodes string }{text, ""})
	}

	cmd := exec.CommandContext(t.Context(), node, "testdata/markdown.mjs", "widget/widget.js")
	var in strings.Builder
	e := json.NewEncoder(&in)
	for _, test := range tests {
		if err := e.Encode(test.text); err != nil {
			t.Fatal(err)
		}
	}
	cmd.Stdin = strings.NewReader(in.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(strings.NewReader(string(out)))
	lines.Buffer(nil, 64<<20)
	for _, test := range tests {
		var result struct {
			Nodes, Grown string
			MS           float64
		}
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &result) != nil {
			t.Fatalf("no result for %.50q", test.text)
		}
		if test.nodes != "" && result.Nodes != test.nodes {
			t.Errorf("%q becomes\n%s, want\n%s", test.text, result.Nodes, test.nodes)
		}
		if result.Grown != result.Nodes {
			t.Errorf("%.100q: while it grows it becomes\n%.1000s, want\n%.1000s", test.text, result.Grown, result.Nodes)
		}
		if result.MS > 2000 {
			t.Errorf("%.50q takes %v ms", test.text, result.MS)
		}
	}
}
