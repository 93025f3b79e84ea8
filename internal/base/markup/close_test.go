package markup_test

import (
	"testing"

	"github.com/leat-dev/leat/internal/base/markup"
)

func TestClose(t *testing.T) {
	for source, want := range map[string]string{
		"":                              "",
		"text":                          "text",
		"```go\nx":                      "```go\nx\n```",
		"```go\nx\n":                    "```go\nx\n```",
		"```go\nx\n```":                 "```go\nx\n```",
		"a\n\n~~~~\n```\n~~~":           "a\n\n~~~~\n```\n~~~\n~~~~",
		"```\na\n```\n\n````\n```\nb":   "```\na\n```\n\n````\n```\nb\n````",
		"- item\n  ```\n  code":         "- item\n  ```\n  code", // the list ends, and with it the code
		"> ```\n> code":                 "> ```\n> code",
		"a `code that is no block\nand": "a `code that is no block\nand",
	} {
		if got := markup.Close(source); got != want {
			t.Errorf("%q: %q, want %q", source, got, want)
		}
	}
}
