package agent_test

import (
	"testing"

	"github.com/leat-dev/leat/agent"
)

func TestMaskURLs(t *testing.T) {
	for in, want := range map[string]string{
		"https://h.example/x?key=SECRET&b=2#top": "https://h.example/x?key=***&b=***#top",
		"https://h.example?SECRET":               "https://h.example?***",
		"https://u:SECRET@h.example/a@b":         "https://u:***@h.example/a@b",
		"ws://SECRET@h.example:1/":               "ws://***@h.example:1/",
		"https://h.example:8443/a/b":             "https://h.example:8443/a/b",
		"curl 'https://h/?k=SECRET' -o x?y=z":    "curl 'https://h/?k=***' -o x?y=z",
		"gpt-5?not-a-url=1":                      "gpt-5?not-a-url=1",
		"":                                       "",
	} {
		if got := agent.MaskURLs(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}
