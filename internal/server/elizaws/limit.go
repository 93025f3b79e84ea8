// The limit on connections of one address.

package elizaws

import (
	"net/http"
	"net/netip"
	"sync"

	"github.com/leat-dev/leat/internal/server"
)

// addresses counts the open sockets of each address. The zero value is ready to use.
//
// A network of IPv6 counts as one address, as for refused tokens: a provider assigns it to one customer.
type addresses struct {
	mu   sync.Mutex
	open map[netip.Prefix]int
}

// enter counts a socket, unless it comes from this machine. If its address has too many, enter returns an error. leave ends the
// count.
func (s *surface) enter(r *http.Request) (leave func(), err error) {
	if addr := server.ClientAddr(r); !addr.IsValid() || addr.IsLoopback() {
		return func() {}, nil // this machine, or an untrusted proxy on it that hides the client's address
	}
	from := server.ClientPrefix(r)
	a := &s.addresses
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open[from] >= perAddress {
		return nil, &server.Error{Status: http.StatusTooManyRequests, Reason: server.ReasonBusy, Message: "too many sockets are open from your address; close one", RetryAfter: authLimit}
	}
	if a.open == nil {
		a.open = map[netip.Prefix]int{}
	}
	a.open[from]++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.open[from]--; a.open[from] == 0 {
			delete(a.open, from)
		}
	}, nil
}
