package aisdk

import (
	"slices"
	"strings"
)

// families are the prefixes of the types of chunks with content. Applications report progress with transient data, so data is among them.
var families = []string{"text-", "reasoning-", "tool-", "data-"}

// progress recognizes the chunks of an answer, also those that give no operations.
func progress(kind string) bool {
	switch kind {
	case "start-step", "finish-step", "reset-step", "source-url", "source-document":
		return true
	}
	return slices.ContainsFunc(families, func(prefix string) bool { return strings.HasPrefix(kind, prefix) })
}
