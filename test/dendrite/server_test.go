package dendrite

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// programs are the programs of Dendrite that the test needs.
var programs = []string{"dendrite", "generate-config", "generate-keys"}

// start builds and starts a homeserver with SQLite on loopback and returns its address. It skips the test unless LEAT_FULL is set.
func start(t *testing.T) string {
	t.Helper()
	if os.Getenv("LEAT_FULL") != "1" {
		t.Skip("SKIPPED: it builds a homeserver, which takes some minutes; set LEAT_FULL=1")
	}
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("SKIPPED: Dendrite needs cgo for SQLite; install gcc")
	}
	dir := t.TempDir()
	build := []string{"build", "-trimpath", "-o", dir + "/"}
	for _, p := range programs {
		build = append(build, "github.com/element-hq/dendrite/cmd/"+p)
	}
	output(t, dir, "go", build...)
	output(t, dir, filepath.Join(dir, "generate-keys"), "--private-key", filepath.Join(dir, "matrix_key.pem"))
	config := output(t, dir, filepath.Join(dir, "generate-config"), "-ci", "-dir", dir, "-server", "localhost")
	config = strings.Replace(config, "private_key: matrix_key.pem", "private_key: "+filepath.Join(dir, "matrix_key.pem"), 1)
	config = strings.Replace(config, "disable_federation: false", "disable_federation: true", 1)
	file := filepath.Join(dir, "dendrite.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	server := exec.Command(filepath.Join(dir, "dendrite"), "-config", file, "-http-bind-address", address, "-really-enable-open-registration")
	server.Dir, server.Stdout, server.Stderr = dir, log, log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill() // it may have ended
		_ = server.Wait()
		_ = log.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("the end of Dendrite's log:\n%s", text[max(0, len(text)-2000):])
		}
	})
	for begin := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		response, err := http.Get("http://" + address + "/_matrix/client/versions")
		if err == nil {
			_ = response.Body.Close()
			return "http://" + address
		}
		if time.Since(begin) > time.Minute {
			t.Fatalf("Dendrite doesn't answer: %v", err)
		}
	}
}

// output runs a program and returns what it prints. The build runs in the test's own module.
func output(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	c := exec.Command(program, args...)
	if program != "go" {
		c.Dir = dir
	}
	var errors bytes.Buffer
	c.Stderr = &errors
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", c, err, errors.Bytes())
	}
	return string(out)
}

// freeAddress returns an address on loopback that nothing uses.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// register makes an account and returns its id and its access token.
func register(t *testing.T, server, name string) (user, token string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"username": name, "password": "a long password", "auth": map[string]string{"type": "m.login.dummy"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server+"/_matrix/client/v3/register", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var account struct {
		User  string `json:"user_id"`
		Token string `json:"access_token"`
		Error string `json:"error"`
	}
	if err := json.NewDecoder(response.Body).Decode(&account); err != nil || account.Token == "" {
		t.Fatalf("%d %s: %v", response.StatusCode, account.Error, err)
	}
	return account.User, account.Token
}
