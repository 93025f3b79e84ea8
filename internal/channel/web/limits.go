package web

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/base/ratelimit"
)

const (
	// maxSockets, maxPerAddress and maxPerChat are how many connections there may be at a time: in total, of one address, and of one
	// chat. An office behind one router has few hundred people, and a person has few tabs.
	maxSockets    = 2000
	maxPerAddress = 200
	maxPerChat    = 10
	// maxAddresses is how many addresses are remembered before those that have been idle are dropped.
	maxAddresses = 10_000
)

var (
	// connectRate limits the connections of an address, and so the number of chats that it can begin.
	connectRate = ratelimit.Rate{Tokens: 120, Per: time.Minute}
	// messageRate limits the messages, commands and uploads of a chat.
	messageRate = ratelimit.Rate{Tokens: 30, Per: time.Minute}
)

// limits counts the connections of all chats and of each address. byAddress may have addresses without connections,
// because their rate must survive a reconnect.
type limits struct {
	mu        sync.Mutex
	sockets   int
	byAddress map[string]*visits
}

// visits are the connections of one address. rate belongs to connectRate. It isn't given back when a connection ends.
type visits struct {
	sockets int
	rate    ratelimit.Bucket
}

// connect counts a connection of an address. If there are too many, ok is false, and wait says when the next attempt may succeed, or
// is 0 if that isn't known. An empty address is not counted: it is that of a proxy. The caller must call disconnect
// exactly once if ok is true.
func (l *limits) connect(address string) (wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sockets >= maxSockets {
		return 0, false
	}
	if address != "" {
		at := time.Now()
		v := l.byAddress[address]
		if v == nil {
			if len(l.byAddress) >= maxAddresses {
				l.forget(at)
			}
			v = &visits{}
			l.byAddress[address] = v
		}
		if v.sockets >= maxPerAddress {
			return 0, false
		}
		if wait, ok := v.rate.Take(at, connectRate); !ok {
			return wait, false
		}
		v.sockets++
	}
	l.sockets++
	return 0, true
}

// forget drops the addresses that have no connection and whose buckets are full. It is called with the lock.
func (l *limits) forget(at time.Time) {
	for address, v := range l.byAddress {
		if v.sockets == 0 && v.rate.Full(at) {
			delete(l.byAddress, address)
		}
	}
}

// disconnect ends what connect began.
func (l *limits) disconnect(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sockets--
	if v := l.byAddress[address]; v != nil {
		v.sockets--
	}
}

// join counts a connection of a chat. The limit is the same for sockets and voice. If it returns true, the caller
// must call quit exactly once.
func (s *rooms) join(r *room) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.sockets >= maxPerChat {
		return false
	}
	r.sockets++
	return true
}

// quit ends what join began.
func (s *rooms) quit(r *room) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.sockets--
}

// mayWrite takes a message from the rate of a chat. wait is the time until the next message may be sent. It is 0 if
// ok is true.
func (s *rooms) mayWrite(r *room) (wait time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.messages.Take(time.Now(), messageRate)
}

// addressOf returns what the limits of an address apply to: an IPv4 address or an IPv6 network of 64 bits, of which a visitor may have
// all addresses. It is "" for the loopback and for sockets without an address, because there proxies and the operator are.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil || a.Unmap().IsLoopback() {
		return ""
	}
	if a = a.Unmap().WithZone(""); a.Is4() {
		return a.String()
	}
	network, err := a.Prefix(64)
	if err != nil {
		return ""
	}
	return network.String()
}
