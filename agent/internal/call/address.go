package call

import (
	"fmt"
	"net/url"
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
