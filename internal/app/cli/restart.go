package cli

import (
	"errors"
	"net"
	"os"
	"slices"
	"time"

	"github.com/leat-dev/leat/internal/app/config"
)

// serve runs a gateway until a signal. If a restart is asked for, the gateway ends as by a signal, and another one with the
// current configuration follows it in the same process.
func (a *app) serve(cfg config.Config, signals <-chan os.Signal) (err error) {
	var s sockets
	defer func() { err = errors.Join(err, s.close()) }()
	for {
		next, err := a.serveOnce(cfg, &s, signals)
		if next == nil || err != nil {
			return err // a gateway that did not end well may have left something that the next one would trip over
		}
		cfg = *next
	}
}

// restart has the gateway restarted with the configuration as it is now, and returns before that happens. If anything is wrong
// with the configuration, nothing changes.
func (r *reloader) restart() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.now
	if r.load != nil {
		var err error
		if next, err = r.load(); err == nil {
			err = check(&next, r.kinds)
		}
		if err != nil {
			return r.refuse(err)
		}
	}
	r.pend(nil)
	r.agent.Leave() // the sockets get the status while they are still open
	select {
	case r.next <- next:
	default: // a restart is on its way
	}
	return nil
}

// sockets are the addresses that a gateway listens on, or the sockets that systemd has opened and passed on. They stay open from one
// gateway to the next one in the same process, so that clients that connect in between wait and are not refused.
type sockets struct {
	addresses []string
	inherited bool // by systemd, whatever the configuration says
	all       []net.Listener
}

// open listens on the addresses, unless that is done already. Closing what it returns ends their use by one gateway.
func (s *sockets) open(addresses []string) ([]net.Listener, error) {
	if s.all == nil || !s.inherited && !slices.Equal(s.addresses, addresses) {
		if err := s.close(); err != nil {
			return nil, err
		}
		var err error
		if s.all, err = inherited(); err != nil {
			return nil, err
		}
		if s.inherited = len(s.all) > 0; !s.inherited {
			if s.all, err = listen(addresses); err != nil {
				return nil, err
			}
		}
		s.addresses = addresses
	}
	lent := make([]net.Listener, len(s.all))
	for i, l := range s.all {
		if err := setDeadline(l, time.Time{}); err != nil {
			return nil, err
		}
		lent[i] = lentListener{l}
	}
	return lent, nil
}

func (s *sockets) close() error {
	all := s.all
	s.all = nil
	return closeListeners(all)
}

// lentListener is a listener that stays open when one gateway is done with it.
type lentListener struct{ net.Listener }

// Close has Accept return, now and until [sockets.open].
func (l lentListener) Close() error { return setDeadline(l.Listener, time.Unix(1, 0)) }

func setDeadline(l net.Listener, t time.Time) error {
	d, ok := l.(interface{ SetDeadline(t time.Time) error })
	if !ok {
		return errors.ErrUnsupported
	}
	return d.SetDeadline(t)
}
