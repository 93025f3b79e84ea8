package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
)

// channel is a conversation of the baseline [fan].
type channel struct {
	mu    sync.Mutex
	conns []net.Conn // in the mode "loop"
	last  *link      // in the mode "writers"
}

// link is a frame of a list that grows at its end. Each writer keeps the link that it waits for, so a frame is freed after the last write.
type link struct {
	ready chan struct{} // closed when frame and next are set
	frame []byte
	next  *link
}

// fan writes each token of a producer to all viewers of its channel, in a frame of constant size. Its arguments are the mode, the
// bytes of a frame, and optionally a folder, where each frame is durable in a file before a viewer gets it. In the mode "loop", the
// producer's goroutine writes to all viewers, so one slow viewer delays the others. In the mode "writers", each viewer has a goroutine that is
// woken for each frame.
func fan(ctx context.Context, args []string, ready func(addr string)) (err error) {
	if len(args) < 2 {
		return fmt.Errorf("fan: %d arguments", len(args))
	}
	size, err := strconv.Atoi(args[1])
	if err != nil {
		return fmt.Errorf("fan: %w", err)
	}
	isLoop := args[0] == "loop"
	store, closeStore, err := storeIn(args[2:])
	if err != nil {
		return fmt.Errorf("fan: %w", err)
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	var mu sync.Mutex
	channels := map[string]*channel{}
	find := func(name string) *channel {
		mu.Lock()
		defer mu.Unlock()
		if channels[name] == nil {
			channels[name] = &channel{last: &link{ready: make(chan struct{})}}
		}
		return channels[name]
	}
	return listen(ctx, ready, func(c net.Conn) {
		role, name, err := readLine(c)
		if err != nil {
			return
		}
		ch := find(name)
		if role == "P" {
			if _, err := io.WriteString(c, acceptLine); err == nil {
				ch.publish(c, size, isLoop, store)
			}
			return
		}
		ch.mu.Lock()
		next := ch.last
		ch.conns = append(ch.conns, c)
		ch.mu.Unlock()
		if _, err := io.WriteString(c, acceptLine); err != nil {
			return
		}
		if isLoop {
			_, _ = c.Read(make([]byte, 1)) // until the viewer disconnects
			return
		}
		for {
			select {
			case <-next.ready:
			case <-ctx.Done():
				return
			}
			if _, err := c.Write(next.frame); err != nil {
				return
			}
			next = next.next
		}
	})
}

// publish reads tokens from a producer, which may be followed by padding, and stores and publishes each.
func (ch *channel) publish(c net.Conn, size int, isLoop bool, store func([]byte) error) {
	buf := make([]byte, 64<<10)
	have := 0
	for {
		n, err := c.Read(buf[have:])
		if err != nil && !errors.Is(err, io.EOF) || n == 0 {
			return
		}
		have += n
		for have >= tokenLen {
			frame := bytes.Repeat([]byte{'.'}, max(size, tokenLen))
			copy(frame, buf[:tokenLen])
			have = copy(buf, buf[tokenLen:have])
			if store(frame) != nil {
				return
			}
			ch.write(frame, isLoop)
		}
	}
}

func (ch *channel) write(frame []byte, isLoop bool) {
	ch.mu.Lock()
	if !isLoop {
		l := ch.last
		ch.last = &link{ready: make(chan struct{})}
		l.frame, l.next = frame, ch.last
		ch.mu.Unlock()
		close(l.ready)
		return
	}
	conns := ch.conns
	ch.mu.Unlock()
	for _, c := range conns {
		_, _ = c.Write(frame) // a closed connection doesn't affect the others
	}
}
