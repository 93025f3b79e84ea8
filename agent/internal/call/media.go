package call

import (
	"cmp"
	"strings"

	"github.com/leat-dev/leat/event"
)

// Reachable reports whether an upstream can read a file by its URL: a data URL, or one on the web. A URL without a scheme is a path on the
// gateway, for which the upstream has no credentials.
func Reachable(url string) bool {
	return strings.HasPrefix(url, "data:") || strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://")
}

// UnreachableText returns the text that the agent gets instead of a file that it can't fetch.
func UnreachableText(m *event.Media) string {
	return "[Attached: " + cmp.Or(m.Name, "a file") + ". It can't be shown to you.]"
}
