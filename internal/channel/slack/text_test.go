package slack

import "testing"

func TestPlain(t *testing.T) {
	name := func(user string) string { return map[string]string{"U7": "Ann"}[user] }
	for text, want := range map[string]string{
		"a &lt;b&gt; &amp;amp; c":                   "a <b> &amp; c",
		"<@U7> and <@U8> and <@U9|bob>":             "@Ann and @U8 and @bob",
		"<#C1|general> <#C2>":                       "#general #C2",
		"<!here> <!subteam^S1|@team> <!subteam^S2>": "@here @team @subteam",
		"<!date^1^{date}|Monday>":                   "Monday",
		"<https://a.example/?x=1&amp;y=2>":          "https://a.example/?x=1&y=2",
		"<https://a.example|the page>":              "the page (https://a.example)",
		"<https://a.example/|a.example>":            "https://a.example/",
		"<mailto:ann@a.example|ann@a.example>":      "ann@a.example",
		"1 < 2":                                     "1 < 2",
		"<>":                                        "",
		" spaces ":                                  "spaces",
		"<@U7":                                      "<@U7",
		"```&lt;p&gt;``` <tel:+1|+1> &lt;@U7&gt; escaped": "```<p>``` +1 <@U7> escaped",
	} {
		if got := plain(text, name); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestWithoutMention(t *testing.T) {
	for text, want := range map[string]string{
		"<@UBOT> help":         "help",
		"help <@UBOT>":         "help",
		"<@UBOT|leat> a":       "a",
		"a <@UBOT> b <@UBOT>":  "a b <@UBOT>",
		"<@UBOT2> <@UBOT> c":   "<@UBOT2> c",
		"<@UBOT>":              "",
		"line\n<@UBOT>\nthere": "line there",
	} {
		if got, ok := withoutMention(text, "UBOT"); got != want || !ok {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{"", "<@U7>", "<@UBOT", "@UBOT"} {
		if got, ok := withoutMention(text, "UBOT"); got != text || ok {
			t.Errorf("%q: %q, %v", text, got, ok)
		}
	}
}

func TestPlace(t *testing.T) {
	for _, id := range []string{"D7", "C1/1700000001.123456"} {
		if at, err := parsePlace(id); err != nil || at.id() != id {
			t.Errorf("%s: %+v, %v", id, at, err)
		}
	}
	for _, id := range []string{"", "/1.1", "C1/", "C1/17", "C1/x.y"} {
		if at, err := parsePlace(id); err == nil {
			t.Errorf("%s: %+v", id, at)
		}
	}
}
