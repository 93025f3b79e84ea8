package config_test

import (
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/app/config"
)

func TestTerminal(t *testing.T) {
	const good = "0123456789abcdef"
	for text, want := range map[string]string{
		"terminal: {enabled: true, token: " + good + "}":       "",
		"terminal: {enabled: false, token: " + good + "}":      "",
		"terminal: {enabled: true}":                            "terminal.token: the terminal needs a separate token",
		"terminal: {enabled: true, token: short}":              "terminal.token: has 5 bytes, at least 16",
		"token: " + good + "\nterminal: {token: " + good + "}": "terminal.token: must differ from the API token",
		"terminal: {token: 0123456789 abcdef}":                 "terminal.token: must be printable ASCII",
		"terminal: {max_duration: 0}":                          "terminal.max_duration: 0s",
		"terminal: {max_duration: 61m}":                        "terminal.max_duration: 1h1m0s must be greater than 0 and at most 1h",
		"terminal: {concurrent: 0}":                            "terminal.concurrent: 0 must be from 1 to 16",
		"terminal: {concurrent: 17}":                           "terminal.concurrent: 17",
	} {
		c, err := config.Load(write(t, text), env())
		if err != nil {
			t.Fatal(err)
		}
		switch err := c.Check(kinds, getenv); {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	c, err := config.Load("", env("ELIZA_TERMINAL_RUN_TOKEN", good))
	if err != nil || c.Terminal.Token != good {
		t.Errorf("the variable of Eliza: %q %v", c.Terminal.Token, err)
	}
	if shown, err := c.YAML(kinds); err != nil || strings.Contains(string(shown), good) {
		t.Errorf("the token is shown: %s %v", shown, err)
	}
}
