package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/server"
)

// listen opens the addresses, all or none: if one fails, those before it are closed again.
func listen(addresses []string) ([]net.Listener, error) {
	var listeners []net.Listener
	for _, address := range addresses {
		l, err := listenOn(address)
		if err != nil {
			return nil, errors.Join(err, server.CloseListeners(listeners))
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

// listenOn opens one address: unix: and a path, or host:port. The most frequent error, an address in use, says what
// to do.
func listenOn(address string) (net.Listener, error) {
	if path, ok := strings.CutPrefix(address, config.UnixPrefix); ok {
		return listenUnix(path)
	}
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("listen on %s: another program is listening there; choose another address with --listen", address)
	}
	return l, err
}

// socketMode lets only the owner and the group of a Unix socket connect.
const socketMode = 0o660

// listenUnix opens a Unix socket. A socket that a killed program left behind is removed first.
//
// A refused connection shows that no program listens on the socket any more. Nothing but a socket is ever removed,
// since the path may be wrong. The mode can only be set after the socket exists; until then the umask applies, with
// which usually only the owner can connect.
func listenUnix(path string) (net.Listener, error) {
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("listen: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("listen on %s: the path exists and is not a socket", path)
	default:
		c, err := net.Dial("unix", path)
		if err == nil {
			return nil, errors.Join(fmt.Errorf("listen on %s: another program is listening there", path), c.Close())
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, fmt.Errorf("listen on %s: %w", path, err)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("listen: remove the socket of a program that has ended: %w", err)
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, socketMode); err != nil {
		return nil, errors.Join(fmt.Errorf("listen: %w", err), l.Close())
	}
	return l, nil
}

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
	return server.CloseListeners(listeners)
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
