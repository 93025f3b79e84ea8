package llm

import (
	"strings"
	"testing"

	"github.com/leat-dev/leat/event"
)

// Errors never contain the key or a part of it, even if the provider repeats it where the text is shortened.
func TestNoKeyInErrors(t *testing.T) {
	const key = "sk-very-secret-0123456789"
	a, err := newAgent(openAIAPI, config{Model: "m", Key: key, KeyFrom: keyEnv})
	if err != nil {
		t.Fatal(err)
	}
	for _, said := range []string{"bad key " + key, strings.Repeat("x", maxExcerpt-8) + key} {
		for what, text := range map[string]string{
			"an answer": a.detail(codeKeyRefused, said), "in a stream": a.inStreamFailure(&event.Error{Code: "odd", Message: said}).Error(),
		} {
			if strings.Contains(text, "sk-") {
				t.Errorf("%s: %s", what, text)
			}
		}
	}
}
