package agent

import (
	"fmt"
	"strings"
	"unicode"
)

// Describer is an agent that introduces itself to people: with a description of one line, and with messages to begin a conversation
// with. The configuration overrides both.
type Describer interface {
	Describe() (description string, suggestions []string)
}

// Limits of an introduction. Clients show all of it in an empty conversation, on a phone too. Lengths are in bytes.
const (
	maxIntroduction = 200
	maxSuggestions  = 4
)

// checkIntroduction checks a description and suggestions. Both may be empty.
func checkIntroduction(text string, messages []string) error {
	if text != "" {
		if err := checkLine(text); err != nil {
			return fmt.Errorf("%s: %w", description, err)
		}
	}
	if len(messages) > maxSuggestions {
		return fmt.Errorf("%s: %d suggestions; at most %d are allowed", suggestions, len(messages), maxSuggestions)
	}
	for _, m := range messages {
		if err := checkLine(m); err != nil {
			return fmt.Errorf("%s: %w", suggestions, err)
		}
	}
	return nil
}

// checkLine checks a text that is shown in one line.
func checkLine(s string) error {
	if strings.TrimSpace(s) == "" || len(s) > maxIntroduction || strings.ContainsFunc(s, unicode.IsControl) {
		return fmt.Errorf("invalid text %q: use one line of 1 to %d bytes", s[:min(len(s), maxIntroduction)], maxIntroduction)
	}
	return nil
}
