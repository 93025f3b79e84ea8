package outgoing

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/leat-dev/leat/internal/server/internal/netpoll"
)

// socket is a Conn together with its system, which has a file descriptor. They are one value to save memory.
type socket struct {
	netpoll.Handle
	out  Conn
	conn net.Conn
}

var (
	_ system          = (*socket)(nil)
	_ netpoll.Handler = (*socket)(nil)
)

// New returns a writer for a connection and registers the connection with the poller. On systems without a poller, it returns
// [errors.ErrUnsupported].
func New(config Config) (*Conn, error) {
	sc, ok := config.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("outgoing: descriptor: %w", err)
	}
	s := &socket{out: Conn{stall: config.Stall, owner: config.Owner}, conn: config.Conn}
	s.out.system = s
	if err := config.Poller.Add(&s.Handle, raw, netpoll.Readable, s); err != nil {
		return nil, err
	}
	return &s.out, nil
}

// OnEvents implements [netpoll.Handler].
func (s *socket) OnEvents(events netpoll.Events) {
	if events&netpoll.Writable != 0 {
		s.out.writable()
	}
	if events &^= netpoll.Writable; events != 0 {
		s.out.owner.OnEvents(events)
	}
}

func (s *socket) await(room bool) error {
	if room {
		return s.Want(netpoll.Readable | netpoll.Writable)
	}
	return s.Want(netpoll.Readable)
}

func (s *socket) close() {
	s.Handle.Close()
	_ = s.conn.Close() // whatever it returns, the connection has ended
}
