package voice

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// CheckService returns an error if a service can't be reached with an address and an API key. An empty address stands for that of the
// service itself, such as example, which needs a key; keyVariable usually has it. Errors contain neither the address, which may have a
// password, nor the key.
func CheckService(address, key, example, keyVariable string) error {
	if key == "" && address == "" {
		return fmt.Errorf("the API key is missing; %s usually has it", keyVariable)
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("the API key contains a character that keys don't have")
	}
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("invalid URL; use one such as %s", example)
	}
	return nil
}

// CheckLanguage returns an error if a language isn't empty and doesn't look like a BCP 47 tag.
func CheckLanguage(tag string) error {
	for part := range strings.SplitSeq(tag, "-") {
		if tag != "" && (len(part) < 1 || len(part) > 8 || strings.Trim(part, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") != "") {
			return fmt.Errorf("invalid language %q; use a tag such as de or en-US", tag)
		}
	}
	return nil
}

// PrimaryLanguage returns the primary subtag of a language, in lower case.
func PrimaryLanguage(tag string) string {
	tag, _, _ = strings.Cut(strings.ToLower(tag), "-")
	return tag
}
