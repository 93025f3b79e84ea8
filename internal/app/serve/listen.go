package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/leat-dev/leat/internal/app/config"
)

// listen opens the addresses, all or none: if one fails, those before it are closed again.
func listen(addresses []string) ([]net.Listener, error) {
	var listeners []net.Listener
	for _, address := range addresses {
		l, err := listenOn(address)
		if err != nil {
			return nil, errors.Join(err, closeListeners(listeners))
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

// closeListeners closes all listeners, also after an error, and joins the errors.
func closeListeners(listeners []net.Listener) error {
	var errs []error
	for _, l := range listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}
