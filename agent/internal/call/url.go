package call

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"github.com/leat-dev/leat/event"
)

// Address parses the http or https URL of an upstream and drops its fragment. name says in errors where the URL was configured. Errors
// don't contain the URL itself, since its query may have a secret.
func Address(name, raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil, u.Host == "", u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%s is not an http or https URL; write it as http://127.0.0.1:8000/chat", name)
	case u.User != nil:
		return nil, fmt.Errorf("%s contains a user name or password; use the option secret and let the program check the signature instead", name)
	}
	u.Fragment = ""
	return u, nil
}

// Path appends elements to the path of base. Slashes, "." and ".." in an element are escaped, so each stays one
// element: an id chosen by an upstream or a client can't point the request, which has credentials, to another
// resource. The elements "." and ".." are escaped here, since url.PathEscape leaves dots unchanged and JoinPath
// would resolve them.
func Path(base *url.URL, elements ...string) *url.URL {
	escaped := make([]string, len(elements))
	for i, e := range elements {
		escaped[i] = url.PathEscape(e)
		if e == "." || e == ".." {
			escaped[i] = strings.ReplaceAll(e, ".", "%2E")
		}
	}
	return base.JoinPath(escaped...)
}

// Reachable reports whether an upstream can read a file by its URL: a data URL, or one on the web. A URL without a scheme is a path on the
// gateway, for which the upstream has no credentials.
func Reachable(url string) bool {
	return strings.HasPrefix(url, "data:") || strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://")
}

// UnreachableText returns the text that the agent gets instead of a file that it can't fetch.
func UnreachableText(m *event.Media) string {
	return "[Attached: " + cmp.Or(m.Name, "a file") + ". It can't be shown to you.]"
}
