package server

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// certificateEvery is the minimum interval between checks of a certificate's files.
const certificateEvery = 5 * time.Second

// certificate is a certificate with its key. It is loaded from files, and again after they have changed. If the new files don't
// match, because one of them is not written yet, the old certificate stays. It is safe for concurrent use.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger
	current           atomic.Pointer[tls.Certificate]

	mu     sync.Mutex // held during a check of the files; other handshakes don't wait for it
	looked time.Time
	stamps [2]os.FileInfo // of the files when they were last read
}

// LoadCertificate loads PEM files: the certificate with its chain, and the key.
func LoadCertificate(certFile, keyFile string, log *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log, looked: time.Now()}
	if _, err := c.reload(); err != nil {
		return nil, err
	}
	return c, nil
}

// Config returns a configuration with this certificate, for TLS 1.2 and newer.
func (c *certificate) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			c.refresh()
			return c.current.Load(), nil
		},
	}
}

// refresh loads the files if a check is due and they have changed.
//
// It runs during handshakes, so a rarely used server checks rarely, and no goroutine is needed.
func (c *certificate) refresh() {
	if !c.mu.TryLock() {
		return // another handshake checks them
	}
	defer c.mu.Unlock()
	at := time.Now()
	if at.Sub(c.looked) < certificateEvery {
		return
	}
	c.looked = at
	switch changed, err := c.reload(); {
	case err != nil:
		c.log.Error("new certificate is invalid; keeping the old one", "error", err)
	case changed:
		c.log.Info("new certificate", "cert", c.certFile, "until", c.current.Load().Leaf.NotAfter)
	}
}

// reload loads the files if they differ from the last ones.
func (c *certificate) reload() (changed bool, err error) {
	var stamps [2]os.FileInfo
	for i, name := range []string{c.certFile, c.keyFile} {
		if stamps[i], err = os.Stat(name); err != nil {
			return false, fmt.Errorf("certificate: %w", err)
		}
	}
	if isSameFile(stamps[0], c.stamps[0]) && isSameFile(stamps[1], c.stamps[1]) {
		return false, nil
	}
	c.stamps = stamps // an invalid pair is logged once, and loaded again when it changes
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return false, fmt.Errorf("certificate %s with key %s: %w", c.certFile, c.keyFile, err)
	}
	c.current.Store(&pair)
	return true, nil
}

func isSameFile(a, b os.FileInfo) bool {
	return a != nil && b != nil && os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}
