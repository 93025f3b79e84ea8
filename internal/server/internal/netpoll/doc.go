// Package netpoll notices events of connections that no goroutine reads or writes: bytes that arrived, space for further bytes, and
// the client's end of the connection.
//
// It has one epoll instance, which is registered with Go's own poller in turn, and one goroutine, which holds no thread while nothing
// happens. On systems other than Linux, and in builds with the tag goroutines, [Poller.Add] returns [errors.ErrUnsupported], and
// connections keep their goroutines.
//
// Invariants:
//
//   - A handler is called by the one goroutine of the poller, so it must be quick and must not block. No two calls overlap.
//   - After [Handle.Close] has returned, no call of the handler starts. One that has started may still run.
//   - Events are edges: a handler has to read or write until the system has nothing more, or it isn't called again.
//   - A handle is closed before its connection. Otherwise the system could give the number of its file to another connection.
package netpoll

// Events is a set of events.
type Events uint8

const (
	// Readable means that bytes have arrived.
	Readable Events = 1 << iota
	// Writable means that the connection takes bytes.
	Writable
	// Closed means that the client has ended its side or that the connection has failed. It is always reported.
	Closed
)

// Handler is called when something has happened to its connection.
type Handler interface{ OnEvents(Events) }
