package soak

import (
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
)

var errCut = errors.New("soak: connection cut")

// cutting is a transport whose event streams break after a random number of bytes, inside of frames and characters too.
type cutting struct {
	base http.RoundTripper

	mu  sync.Mutex
	rng *rand.Rand
	// patience doubles what the next stream may carry, so that a large frame comes through in the end.
	patience int
}

// A stream breaks after some hundred to some ten thousand bytes: every few seconds, at the pace of one conversation.
const (
	minCut = 500
	maxCut = 40_000
	// maxPatience bounds the doublings.
	maxPatience = 6
)

func (c *cutting) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := c.base.RoundTrip(r)
	if err != nil || r.Header.Get("Accept") != "text/event-stream" || res.StatusCode != http.StatusOK {
		return res, err
	}
	c.mu.Lock()
	left := (minCut + c.rng.IntN(maxCut-minCut)) << c.patience
	c.patience = min(c.patience+1, maxPatience)
	c.mu.Unlock()
	res.Body = &cutBody{ReadCloser: res.Body, left: left}
	return res, nil
}

// progress says that a frame came through.
func (c *cutting) progress() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.patience = 0
}

type cutBody struct {
	io.ReadCloser
	left int
}

func (b *cutBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, errCut
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
