// The limit on failed sign-ins of one client, so that tokens can't be guessed.

package server

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/base/ratelimit"
)

// attemptRate is how many wrong tokens an address may present. It is enough for typing errors and for a page that repeats
// requests with an old token, and too few for guessing.
var attemptRate = ratelimit.Rate{Tokens: 30, Per: 2 * time.Minute}

// maxAddresses is how many addresses are remembered. Above it, addresses without recent failures are removed first.
const maxAddresses = 10_000

// attempts counts the wrong tokens of each address. The zero value is ready to use.
type attempts struct {
	mu      sync.Mutex
	buckets map[netip.Prefix]*ratelimit.Bucket
}

// wait returns how long an address has to wait until its next token is checked. It returns 0 if the address may try now.
func (a *attempts) wait(from netip.Prefix, at time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.buckets[from]
	if b == nil {
		return 0
	}
	wait, ok := b.Take(at, attemptRate)
	if ok {
		b.Return(attemptRate)
	}
	return wait
}

// failed counts a wrong token.
func (a *attempts) failed(from netip.Prefix, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.buckets[from]
	if b == nil {
		if a.buckets == nil {
			a.buckets = map[netip.Prefix]*ratelimit.Bucket{}
		}
		if len(a.buckets) >= maxAddresses {
			a.forget(at)
		}
		b = &ratelimit.Bucket{}
		a.buckets[from] = b
	}
	b.Take(at, attemptRate)
}

// forget makes room in a full table: it removes the addresses without recent failures. If every address has some, it removes
// arbitrary ones.
func (a *attempts) forget(at time.Time) {
	for k, b := range a.buckets {
		if b.Full(at) {
			delete(a.buckets, k)
		}
	}
	for k := range a.buckets {
		if len(a.buckets) < maxAddresses*3/4 {
			return
		}
		delete(a.buckets, k)
	}
}

// ClientPrefix returns the range of addresses that counts as one client: an IPv4 address, or the /64 that a provider assigns to
// a customer. All unknown addresses count as one client.
func ClientPrefix(r *http.Request) netip.Prefix { return prefixOf(ClientAddr(r)) }

// prefixOf returns the network that counts as one client: an IPv4 address, or the /64 of an IPv6 address, of which a client usually
// has all addresses.
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
		return netip.Prefix{} // the address has a zone
	}
	return p
}
