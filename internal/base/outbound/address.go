package outbound

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// special are the special-purpose blocks (RFC 6890 and its successors) that are not part of the public internet, or that map to
// another address.
var special = []struct {
	prefix netip.Prefix
	kind   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "unspecified"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "shared, behind a carrier's NAT"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},
	{netip.MustParsePrefix("192.0.2.0/24"), "for documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), "a 6to4 relay"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("198.18.0.0/15"), "for benchmarks"},
	{netip.MustParsePrefix("198.51.100.0/24"), "for documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "for documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},

	{netip.MustParsePrefix("::/128"), "unspecified"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "local NAT64"},
	{netip.MustParsePrefix("2001::/23"), "reserved"}, // includes Teredo
	{netip.MustParsePrefix("2001:db8::/32"), "for documentation"},
	{netip.MustParsePrefix("2002::/16"), "6to4"},
	{netip.MustParsePrefix("3fff::/20"), "for documentation"},
	{netip.MustParsePrefix("fc00::/7"), "private"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}

var (
	nat64   = netip.MustParsePrefix("64:ff9b::/96")
	unicast = netip.MustParsePrefix("2000::/3") // all allocated IPv6 addresses
)

// Check returns nil for an address of the public internet. Otherwise the error wraps errPrivate and names the kind of the
// address.
func Check(a netip.Addr) error {
	original := a
	a = a.Unmap().WithZone("")
	if nat64.Contains(a) { // NAT64 translates it to the IPv4 address in the last four bytes
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	for _, s := range special {
		if s.prefix.Contains(a) {
			return fmt.Errorf("%w: %s is %s", errPrivate, original, s.kind)
		}
	}
	if !a.IsValid() || (a.Is6() && !unicast.Contains(a)) {
		return fmt.Errorf("%w: %s is reserved", errPrivate, original)
	}
	return nil
}

// IsWithin reports whether a secret of a server may be sent to an address: one of the server itself, at base, or an https address of one
// of the domains.
func IsWithin(address, base string, domains ...string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	if server, err := url.Parse(base); err == nil && u.Scheme == server.Scheme && u.Host == server.Host {
		return true
	}
	return u.Scheme == "https" && slices.ContainsFunc(domains, func(domain string) bool {
		return u.Hostname() == domain || strings.HasSuffix(u.Hostname(), "."+domain)
	})
}
