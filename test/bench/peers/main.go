// Command peers runs another server that the benchmarks compare Leat with. Its argument is the name of the server.
//
// It prints its addresses as JSON and serves until its standard input ends. Producers connect to "addr" and send "P <channel>" and then
// tokens of a constant length, like those of the baseline; so they cost the peer less than its own protocol for producers. Viewers connect
// to "second" with the peer's own WebSocket protocol. Each line on standard input is answered with the memory after a garbage collection.
//
// The servers keep everything in memory, with a history, so that a viewer that reconnects can recover what it has missed.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// tokenLen is the length of a token of the benchmarks.
const tokenLen = 24

// peer is a server that was started.
type peer struct {
	viewers string // address
	publish func(channel string, token []byte) error
	close   func()
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 2 {
		return fmt.Errorf("usage: peers centrifuge|nats")
	}
	start := map[string]func() (*peer, error){"centrifuge": startCentrifuge, "nats": startNATS}[os.Args[1]]
	if start == nil {
		return fmt.Errorf("unknown peer %q", os.Args[1])
	}
	p, err := start()
	if err != nil {
		return err
	}
	defer p.close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go accept(ctx, l, p)
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(map[string]string{"addr": l.Addr().String(), "second": p.viewers}); err != nil {
		return err
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		runtime.GC()
		debug.FreeOSMemory()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if err := out.Encode(map[string]uint64{"heap": m.HeapAlloc, "stack": m.StackInuse}); err != nil {
			return err
		}
	}
	return nil
}

// accept serves producers until ctx ends.
func accept(ctx context.Context, l net.Listener, p *peer) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			defer context.AfterFunc(ctx, func() { _ = c.Close() })()
			if err := produce(c, p); err != nil && ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, "peers: producer:", err)
			}
		}()
	}
}

// produce publishes the tokens of one producer.
func produce(c net.Conn, p *peer) error {
	r := bufio.NewReader(c)
	line, err := r.ReadString('\n')
	if err != nil {
		return err
	}
	_, channel, _ := strings.Cut(strings.TrimSpace(line), " ")
	if _, err := io.WriteString(c, "accepted\n"); err != nil {
		return err
	}
	for {
		token := make([]byte, tokenLen)
		if _, err := io.ReadFull(r, token); err != nil {
			return nil // the producer has disconnected
		}
		if err := p.publish(channel, token); err != nil {
			return err
		}
	}
}
