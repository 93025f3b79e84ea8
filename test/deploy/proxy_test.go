package deploy

import (
	"bytes"
	"crypto/x509"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// proxy is a server that runs a file of docs/deploy, changed in nothing but addresses and files.
type proxy struct {
	t     *testing.T
	http  string // address of the server without TLS
	https string
	roots *x509.CertPool
}

// change replaces parts of a file's text; a part that isn't there is a fault of the test.
func change(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the file of docs/deploy does not say %q", pairs[i])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

// start runs the server until the test ends, and returns when it listens.
func (p *proxy) start(cmd *exec.Cmd, logFile string) {
	t := p.t
	t.Helper()
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has nothing to keep
		<-gone
		log, err := os.ReadFile(logFile)
		if t.Failed() {
			t.Logf("%s says %s\n%s%v", cmd.Path, &output, log, err)
		}
	})
	for begin := time.Now(); ; {
		c, err := net.Dial("tcp", p.https)
		if err == nil {
			_ = c.Close()
			return
		}
		select {
		case err := <-gone:
			gone <- err
			t.Fatalf("%s ends: %v\n%s", cmd.Path, err, &output)
		case <-time.After(10 * time.Millisecond): // polls another process
		}
		if time.Since(begin) > waitLimit {
			t.Fatalf("%s does not listen: %v", cmd.Path, err)
		}
	}
}
