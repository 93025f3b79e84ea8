package agent

import (
	"regexp"
	"strings"
)

// masked replaces a secret in displayed text.
const masked = "***"

// address matches URLs in a text.
var address = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s'"<>]+`)

// MaskURLs masks the passwords and all query values of the URLs in a text, since a query value with any name can be a secret.
func MaskURLs(text string) string { return address.ReplaceAllStringFunc(text, maskURL) }

// maskURL masks the password of a URL, a user name without a password, and the values of all query parameters: any of them may be a
// token. It cuts the text by hand, because url.Parse would fail for some targets and escape others.
func maskURL(u string) string {
	u, fragment, hasFragment := strings.Cut(u, "#")
	u, query, hasQuery := strings.Cut(u, "?")
	scheme, tail, _ := strings.Cut(u, "://")
	host, path, hasPath := strings.Cut(tail, "/")
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		user, _, password := strings.Cut(host[:i], ":")
		if !password {
			user = masked // a token alone
		} else {
			user += ":" + masked
		}
		host = user + host[i:]
	}
	result := scheme + "://" + host
	if hasPath {
		result += "/" + path
	}
	if hasQuery {
		pairs := strings.Split(query, "&")
		for i, pair := range pairs {
			if name, _, ok := strings.Cut(pair, "="); ok {
				pairs[i] = name + "=" + masked
			} else if pair != "" {
				pairs[i] = masked
			}
		}
		result += "?" + strings.Join(pairs, "&")
	}
	if hasFragment {
		result += "#" + fragment
	}
	return result
}
