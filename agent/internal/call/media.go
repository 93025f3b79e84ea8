package call

import (
	"strings"

	"github.com/leat-dev/leat/event"
)

// Reachable reports whether an upstream gets a file by its URL: it is in it, or lies on the web. A path is one of the gateway's own.
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
