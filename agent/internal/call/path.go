package call

import (
	"net/url"
	"strings"
)

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
