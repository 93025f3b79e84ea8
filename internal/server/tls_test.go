package server_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/internal/server"
)

// pair returns a certificate for localhost with the given serial number, which identifies it in the tests, and its key, both as
// PEM.
func pair(t *testing.T, serial int64) (cert, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(serial), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(24 * time.Hour),
	}, &x509.Certificate{SerialNumber: big.NewInt(1)}, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	kder, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: kder})
}

func put(t *testing.T, path string, b []byte) {
	t.Helper()
	// As those who renew certificates do: a new file takes the old one's place.
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// A renewed certificate is used without a restart. If only one of the two files has changed, the old pair stays in use.
func TestCertificateRenewed(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	cert, key := pair(t, 1)
	put(t, certFile, cert)
	put(t, keyFile, key)
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c, err := server.LoadCertificate(certFile, keyFile, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		l, stop := serve(t, newServer(server.Options{TLS: c.Config()}))
		defer stop()
		client := &http.Client{Transport: &http.Transport{
			ForceAttemptHTTP2: true, DisableKeepAlives: true,
			DialContext:     func(ctx context.Context, _, _ string) (net.Conn, error) { return l.Dial(ctx) },
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		}}
		serial := func(want int64) {
			t.Helper()
			res, err := client.Get("https://localhost/api/public")
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if got := res.TLS.PeerCertificates[0].SerialNumber.Int64(); got != want || res.ProtoMajor != 2 || res.StatusCode != 200 {
				t.Errorf("certificate %d over HTTP/%d, status %d; want certificate %d", got, res.ProtoMajor, res.StatusCode, want)
			}
			synctest.Wait()
		}
		serial(1)
		cert, key := pair(t, 2)
		put(t, certFile, cert)
		time.Sleep(time.Minute)
		serial(1) // the key is not there yet
		if !strings.Contains(log.String(), "keeping the old one") {
			t.Errorf("the log says %s", &log)
		}
		put(t, keyFile, key)
		serial(1) // not each handshake looks
		time.Sleep(time.Minute)
		serial(2)
		if err := os.Remove(keyFile); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		serial(2)
		put(t, keyFile, key)
		time.Sleep(time.Minute)
		serial(2)
	})
}

func TestCertificateRefused(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	load := func() error {
		_, err := server.LoadCertificate(certFile, keyFile, slog.New(slog.DiscardHandler))
		return err
	}
	if err := load(); err == nil || !strings.Contains(err.Error(), certFile) {
		t.Errorf("no files: %v", err)
	}
	cert, _ := pair(t, 1)
	_, key := pair(t, 2)
	put(t, certFile, cert)
	put(t, keyFile, key)
	if err := load(); err == nil || !strings.Contains(err.Error(), keyFile) {
		t.Errorf("files that do not fit: %v", err)
	}
}
