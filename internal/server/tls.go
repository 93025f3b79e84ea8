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

// certificateEvery is how often a handshake looks whether the files of a certificate have changed.
const certificateEvery = 5 * time.Second

// Certificate is a certificate with its key, from files that are read again when they have changed. A pair that does not
// fit, because only one of the files is new yet, leaves the old one in use. It may be used from several goroutines.
type Certificate struct {
	certFile, keyFile string
	log               *slog.Logger
	current           atomic.Pointer[tls.Certificate]

	mu     sync.Mutex // held by who looks at the files; nobody waits for it
	looked time.Time
	stamps [2]os.FileInfo // of the files as they were last read
}

// LoadCertificate reads the files, as PEM: the certificate with its chain, and the key.
func LoadCertificate(certFile, keyFile string, log *slog.Logger) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile, log: log, looked: time.Now()}
	if _, err := c.read(); err != nil {
		return nil, err
	}
	return c, nil
}

// Config returns a configuration that serves the certificate, to TLS 1.2 and newer.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			c.look()
			return c.current.Load(), nil
		},
	}
}

// look reads the files anew if it is time to and they have changed.
func (c *Certificate) look() {
	if !c.mu.TryLock() {
		return // another handshake does
	}
	defer c.mu.Unlock()
	now := time.Now()
	if now.Sub(c.looked) < certificateEvery {
		return
	}
	c.looked = now
	switch changed, err := c.read(); {
	case err != nil:
		c.log.Error("new certificate is not usable; the old one stays", "error", err)
	case changed:
		c.log.Info("new certificate", "cert", c.certFile, "until", c.current.Load().Leaf.NotAfter)
	}
}

// read takes the files if they differ from what was read last.
func (c *Certificate) read() (changed bool, err error) {
	var stamps [2]os.FileInfo
	for i, name := range []string{c.certFile, c.keyFile} {
		if stamps[i], err = os.Stat(name); err != nil {
			return false, fmt.Errorf("certificate: %w", err)
		}
	}
	if same(stamps[0], c.stamps[0]) && same(stamps[1], c.stamps[1]) {
		return false, nil
	}
	c.stamps = stamps // an unusable pair is told once, and tried again when it changes
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return false, fmt.Errorf("certificate %s with key %s: %w", c.certFile, c.keyFile, err)
	}
	c.current.Store(&pair)
	return true, nil
}

func same(a, b os.FileInfo) bool {
	return a != nil && b != nil && os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}
