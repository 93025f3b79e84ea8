package call

import (
	"net/url"
	"strings"
)

// Path returns a URL below base whose further path is made of the elements. Each stays one element, whatever an upstream or
// a client has put into an id: slashes are escaped, and dots lead nowhere.
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
