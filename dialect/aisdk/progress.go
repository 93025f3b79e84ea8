package aisdk

import "strings"

// progress recognizes the chunks of an answer that draw nothing, and transient data, with which applications report progress.
func progress(kind string) bool {
	switch kind {
	case "start-step", "finish-step", "reset-step", "source-url", "source-document":
		return true
	}
	for _, family := range []string{"text-", "reasoning-", "tool-", "data-"} {
		if strings.HasPrefix(kind, family) {
			return true
		}
	}
	return false
}
