package server

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/base/ratelimit"
)

// attemptRate is how many wrong tokens an address may present: enough for a person who mistypes and a page full of requests
// with an old token, nothing to somebody who guesses.
var attemptRate = ratelimit.Rate{Tokens: 30, Per: 2 * time.Minute}

// maxAddresses bounds the addresses that are remembered. Above it the longest forgiven go first.
const maxAddresses = 10_000

// attempts count the wrong tokens of each address. The zero value is ready to use.
type attempts struct {
	mu   sync.Mutex
	each map[netip.Prefix]*ratelimit.Bucket
}

// wait returns how long an address has to wait until a token of it is looked at again; 0: it may try.
func (a *attempts) wait(from netip.Prefix, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.each[from]
	if b == nil {
		return 0
	}
	wait, ok := b.Take(now, attemptRate)
	if ok {
		b.Return(attemptRate)
	}
	return wait
}

// failed counts a wrong token.
func (a *attempts) failed(from netip.Prefix, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.each[from]
	if b == nil {
		if a.each == nil {
			a.each = map[netip.Prefix]*ratelimit.Bucket{}
		}
		if len(a.each) >= maxAddresses {
			a.forget(now)
		}
		b = &ratelimit.Bucket{}
		a.each[from] = b
	}
	b.Take(now, attemptRate)
}

// forget makes room: those who are forgiven go, and if all are in debt, some do.
func (a *attempts) forget(now time.Time) {
	for k, b := range a.each {
		if b.Full(now) {
			delete(a.each, k)
		}
	}
	for k := range a.each {
		if len(a.each) < maxAddresses*3/4 {
			return
		}
		delete(a.each, k)
	}
}

// ClientPrefix is what counts as one client: an IPv4 address, or the /64 that a provider gives to one customer. Addresses
// that are not known are one.
func ClientPrefix(r *http.Request) netip.Prefix { return prefixOf(ClientAddr(r)) }

func prefixOf(ip netip.Addr) netip.Prefix {
	if !ip.IsValid() {
		return netip.Prefix{}
	}
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	p, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // it has a zone
	}
	return p
}
