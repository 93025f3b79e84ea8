package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
)

// UnixPrefix begins an address that is the path of a Unix socket.
const UnixPrefix = "unix:"

// TLS names the PEM files of a certificate chain and its key. Either both are set or none.
type TLS struct {
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
}

// On reports whether TLS is configured.
func (t TLS) On() bool { return t.Cert != "" || t.Key != "" }

// Public returns the URL that people use, or nil if none is set. It must have no user, query or fragment, because the
// paths of routes are appended to it.
func (c *Config) Public() (*url.URL, error) {
	if c.PublicURL == "" {
		return nil, nil
	}
	u, err := url.Parse(c.PublicURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return nil, fmt.Errorf("invalid URL %q; write it as https://chat.example.com or https://example.com/leat", c.PublicURL)
	}
	if u.Path != "" && !goodPath(strings.TrimSuffix(u.EscapedPath(), "/")) {
		return nil, fmt.Errorf("invalid URL %q: its path may contain letters, digits and . _ ~ - between single slashes", c.PublicURL)
	}
	return u, nil
}

// Base returns the path prefix of all routes, without a trailing slash: base_path if it is set, else the path of
// public_url. The empty prefix means that the gateway has the whole host.
func (c *Config) Base() (string, error) {
	base := c.BasePath
	if base == "" {
		if u, err := c.Public(); err == nil && u != nil {
			base = u.Path
		}
	}
	base = strings.TrimSuffix(base, "/")
	if !goodPath(base) {
		return "", fmt.Errorf("invalid path %q; write it as /leat, with letters, digits and . _ ~ - between single slashes", c.BasePath)
	}
	return base, nil
}

// path matches prefixes that need no escaping in a URL, in HTML or in a cookie.
var path = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)*$`)

// goodPath reports whether a prefix can be used. A . or .. segment would be removed by clients, whose requests would
// then miss the prefix.
func goodPath(s string) bool {
	return path.MatchString(s) && !strings.Contains(s+"/", "/./") && !strings.Contains(s+"/", "/../")
}

// Proxies returns the networks of the trusted proxies. The gateway believes the forwarding headers of requests from
// these addresses, so a network that contains every address is refused. A single address is a network with one
// address.
func (c *Config) Proxies() ([]netip.Prefix, error) {
	var networks []netip.Prefix
	for _, s := range c.TrustedProxies {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			var a netip.Addr
			if a, err = netip.ParseAddr(s); err == nil && a.Zone() == "" {
				a = a.Unmap()
				p = netip.PrefixFrom(a, a.BitLen())
			}
		}
		switch {
		case !p.IsValid():
			return nil, fmt.Errorf("invalid network %q; write it as 127.0.0.1, 10.0.0.0/8 or fd00::/8", s)
		case p.Bits() == 0:
			return nil, fmt.Errorf("%q contains all addresses, so any client could forge its address; list the addresses of the proxies", s)
		case p.Addr().Is4In6():
			return nil, fmt.Errorf("%q: write an IPv4 network in IPv4 notation", s)
		}
		networks = append(networks, p.Masked())
	}
	return networks, nil
}

// checkSite checks the keys that say under which addresses the gateway is reached. A public URL on another host than
// loopback means that a proxy makes the gateway reachable, so it needs a token like an address that other machines
// reach.
func (c *Config) checkSite(bad reporter) {
	u, err := c.Public()
	switch {
	case err != nil:
		bad("public_url", "%w", err)
	case u != nil && c.Open() && !Loopback(u.Hostname()):
		bad("public_url", "%s is reachable from other machines, and no token is set; set one (LEAT_API_TOKEN)", u.Redacted())
	}
	if _, err := c.Base(); err != nil {
		bad("base_path", "%w", err)
	}
	if _, err := c.Proxies(); err != nil {
		bad("trusted_proxies", "%w", err)
	}
	if c.TLS.On() && (c.TLS.Cert == "" || c.TLS.Key == "") {
		bad("tls", "cert and key must be set together")
	}
}
