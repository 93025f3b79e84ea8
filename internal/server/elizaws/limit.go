package elizaws

import (
	"net/http"
	"net/netip"
	"sync"

	"github.com/leat-dev/leat/internal/server"
)

// addresses count the open sockets of each client. The zero value is ready to use.
type addresses struct {
	mu   sync.Mutex
	open map[netip.Prefix]int
}

// enter counts a socket in, but none of this machine itself. leave counts it out.
func (s *surface) enter(r *http.Request) (leave func(), err error) {
	if addr := server.ClientAddr(r); !addr.IsValid() || addr.IsLoopback() {
		return func() {}, nil // this machine, or a proxy on it that is not trusted to say who else
	}
	from := server.ClientPrefix(r)
	a := &s.addresses
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open[from] >= perAddress {
		return nil, &server.Error{Status: http.StatusTooManyRequests, Reason: server.ReasonBusy, Message: "too many sockets are open from your address", RetryAfter: authLimit}
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
