package call

import (
	"fmt"
	"net/url"
)

// Address checks a URL. The error does not repeat what may be secret in it.
func Address(name, raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil, u.Host == "", u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%s is no URL of a program; write it as http://127.0.0.1:8000/chat", name)
	case u.User != nil:
		return nil, fmt.Errorf("%s holds a name or password; let the program check the signature instead, see the option secret", name)
	}
	u.Fragment = ""
	return u, nil
}
