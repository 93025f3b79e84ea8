package server

import (
	"net"
	"syscall"
)

// maxUnsent is how many bytes of a connection may wait in the kernel beyond what is on its way, in bytes: some frames.
// Without a bound Linux takes up to 4 MB for a reader that stalls; these bytes can't be merged any more, so it would
// read what is long out of date, one small frame after another.
const maxUnsent = 16 << 10

// tcpNotSentLowat is TCP_NOTSENT_LOWAT, which package syscall does not name.
const tcpNotSentLowat = 0x19

// limitUnsent makes writes to a connection wait where more than maxUnsent bytes are not sent yet.
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
