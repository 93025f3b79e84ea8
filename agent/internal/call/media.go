package call

import (
	"strings"

	"github.com/leat-dev/leat/event"
)

// Reachable reports whether an upstream can read a file by its URL: a data URL, or one on the web. A URL without a scheme is a path on the
// gateway, for which the upstream has no credentials.
func Reachable(url string) bool {
	for _, scheme := range []string{"data:", "https://", "http://"} {
		if strings.HasPrefix(url, scheme) {
			return true
		}
	}
	return false
}

// UnreachableText returns the text that the agent gets instead of a file that it can't fetch.
func UnreachableText(m *event.Media) string {
	name := m.Name
	if name == "" {
		name = "a file"
	}
	return "[Attached: " + name + ". It can't be shown to you.]"
}
