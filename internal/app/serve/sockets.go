package serve

import (
	"errors"
	"net"
	"slices"
	"time"
)

// Sockets are the addresses that a gateway listens on, or the sockets that systemd opened for the process. They stay open from one [App]
// to the next, so clients that connect during a restart wait instead of being refused. The zero value has none open.
type Sockets struct {
	addresses   []string
	fromSystemd bool // from systemd; then the configured addresses are ignored
	listeners   []net.Listener
}

// open listens on the addresses if they are not open yet. Closing the listeners that it returns ends their use by one
// App only.
//
// If the addresses have changed since the last call, the old ones are closed and the new ones opened. Sockets of
// systemd can't be opened again by this process, so they are never closed in between. Each call makes Accept wait
// again, which the Close of a borrowed listener had ended.
func (s *Sockets) open(addresses []string) ([]net.Listener, error) {
	if s.listeners == nil || !s.fromSystemd && !slices.Equal(s.addresses, addresses) {
		if err := s.Close(); err != nil {
			return nil, err
		}
		var err error
		if s.listeners, err = systemdListeners(); err != nil {
			return nil, err
		}
		if s.fromSystemd = len(s.listeners) > 0; !s.fromSystemd {
			if s.listeners, err = listen(addresses); err != nil {
				return nil, err
			}
		}
		s.addresses = addresses
	}
	borrowed := make([]net.Listener, len(s.listeners))
	for i, l := range s.listeners {
		if err := setDeadline(l, time.Time{}); err != nil {
			return nil, err
		}
		borrowed[i] = borrowedListener{l}
	}
	return borrowed, nil
}

// Close closes the addresses.
func (s *Sockets) Close() error {
	listeners := s.listeners
	s.listeners = nil
	return closeListeners(listeners)
}

// borrowedListener is a listener that stays open when one App has closed it.
type borrowedListener struct{ net.Listener }

// Close makes Accept return at once, until the next [Sockets.open].
func (l borrowedListener) Close() error { return setDeadline(l.Listener, time.Unix(1, 0)) }

// setDeadline sets the deadline of Accept. TCP and Unix listeners have the method; net.Listener doesn't declare it.
func setDeadline(l net.Listener, t time.Time) error {
	d, ok := l.(interface{ SetDeadline(t time.Time) error })
	if !ok {
		return errors.ErrUnsupported
	}
	return d.SetDeadline(t)
}
