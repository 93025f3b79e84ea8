package outbound

import (
	"errors"
	"net/netip"
	"testing"
)

func TestCheck(t *testing.T) {
	for address, public := range map[string]bool{
		"1.1.1.1":              true,
		"8.8.8.8":              true,
		"9.255.255.255":        true,
		"11.0.0.0":             true,
		"100.63.255.255":       true,
		"100.128.0.0":          true,
		"172.15.255.255":       true,
		"172.32.0.0":           true,
		"192.167.255.255":      true,
		"198.20.0.0":           true,
		"223.255.255.255":      true,
		"2606:4700::1111":      true,
		"2a00::1":              true,
		"::ffff:8.8.8.8":       true,
		"64:ff9b::8.8.8.8":     true,
		"0.0.0.0":              false,
		"0.1.2.3":              false,
		"10.0.0.1":             false,
		"10.255.255.255":       false,
		"100.64.0.1":           false,
		"100.127.255.255":      false,
		"127.0.0.1":            false,
		"127.255.255.254":      false,
		"169.254.169.254":      false,
		"172.16.0.1":           false,
		"172.31.255.255":       false,
		"192.0.0.1":            false,
		"192.0.2.1":            false,
		"192.168.0.1":          false,
		"198.18.0.1":           false,
		"198.19.255.255":       false,
		"203.0.113.7":          false,
		"224.0.0.1":            false,
		"239.255.255.255":      false,
		"240.0.0.1":            false,
		"255.255.255.255":      false,
		"::":                   false,
		"::1":                  false,
		"::2":                  false,
		"::127.0.0.1":          false, // IPv4-compatible
		"::ffff:127.0.0.1":     false,
		"::ffff:10.0.0.1":      false,
		"::ffff:0.0.0.0":       false,
		"::ffff:0:127.0.0.1":   false, // translated
		"64:ff9b::127.0.0.1":   false,
		"64:ff9b::10.1.2.3":    false,
		"64:ff9b::169.254.1.1": false,
		"64:ff9b:1::8.8.8.8":   false,
		"100::1":               false,
		"2001::1":              false,
		"2001:db8::1":          false,
		"2002:7f00:1::":        false,
		"3fff::1":              false,
		"fc00::1":              false,
		"fd12:3456::1":         false,
		"fe80::1":              false,
		"fe80::1%eth0":         false,
		"fec0::1":              false,
		"ff02::1":              false,
		"4000::1":              false,
	} {
		err := Check(netip.MustParseAddr(address))
		if (err == nil) != public || err != nil && !errors.Is(err, errPrivate) {
			t.Errorf("%s: %v, want public %v", address, err, public)
		}
	}
	if err := Check(netip.Addr{}); !errors.Is(err, errPrivate) {
		t.Errorf("zero address: %v", err)
	}
}
