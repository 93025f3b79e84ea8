package server

import (
	"net"
	"syscall"
)

// maxUnsent is how many bytes of a connection may wait in the kernel in addition to the bytes in flight: a few frames. Without
// a limit, Linux buffers up to 4 MB for a reader that stalls. These bytes can no longer be merged, so the reader would get
// outdated events in many small frames.
const maxUnsent = 16 << 10

// tcpNotSentLowat is TCP_NOTSENT_LOWAT, which package syscall lacks.
const tcpNotSentLowat = 0x19

// limitUnsent makes writes to a connection block while more than maxUnsent bytes are unsent.
func limitUnsent(c net.Conn) error {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	var serr error
	err = raw.Control(func(fd uintptr) {
		serr = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpNotSentLowat, maxUnsent)
	})
	if err != nil {
		return err
	}
	return serr
}
