package compat

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The client of Durable Streams, by its own tests in the folder node.
func TestDurable(t *testing.T) {
	requireNode(t, "@durable-streams/client")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	url, control := serveChats(t)
	cmd := exec.CommandContext(ctx, "node", "--test", "--test-timeout=300000", "durable.test.js")
	cmd.Dir, cmd.Env = "node", append(os.Environ(), "LEAT_URL="+url, "LEAT_TOKEN="+secret, "LEAT_GATES="+control)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// suiteSize is the number of tests of the conformance suite.
const suiteSize = 338

// forkTests are about a third of the suite by their names. Most of its time is waits, so this third runs at the same time as the others.
const forkTests = "^(Fork|TTL|Stream Closure|Reserved)"

// TestDurableSuite runs the whole conformance suite of Durable Streams against the program. Its tests of lifetimes wait for half a second less
// than what has to pass, so a test that fails is repeated: on a busy machine, the wait alone may take too long.
func TestDurableSuite(t *testing.T) {
	requireNode(t, "@durable-streams/server-conformance-tests")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	url := serveLeat(t)
	var passed [2]int
	var runs sync.WaitGroup
	for i, pattern := range []string{forkTests, "^(?!" + forkTests[1:] + ")"} {
		report := filepath.Join(t.TempDir(), "report.json")
		runs.Go(func() {
			cmd := exec.CommandContext(ctx, "node", "node_modules/vitest/vitest.mjs", "run", "durable-suite.test.js", "--testTimeout", "120000", "--retry", "8", "--reporter", "json", "--outputFile", report, "-t", pattern)
			cmd.Dir, cmd.Env = "node", append(os.Environ(), "LEAT_URL="+url)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", pattern, err, out)
			}
			var r struct {
				NumPassedTests  int
				NumPendingTests int
			}
			b, err := os.ReadFile(report)
			if err == nil {
				err = json.Unmarshal(b, &r)
			}
			if err != nil {
				t.Error(err)
			}
			passed[i] = r.NumPassedTests
		})
	}
	runs.Wait()
	if n := passed[0] + passed[1]; n != suiteSize {
		t.Errorf("%d tests passed (%v), want %d", n, passed, suiteSize)
	}
}

// serveLeat runs the program without a token until the test ends, and returns its address.
func serveLeat(t *testing.T) (url string) {
	t.Helper()
	path := buildLeat(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	// Not with a context, which ends before the program is stopped in order.
	cmd := exec.Command(path, "serve", "--listen", address, "--data", t.TempDir(), "--agent", "demo")
	cmd.Env = append(os.Environ(), "LEAT_OUTPUTS_DURABLE_STREAMS_STORE=true", "LEAT_OUTPUTS_DURABLE_STREAMS_WAIT=1s", "LEAT_ALLOWED_ORIGINS=https://example.com", "LEAT_LOG_LEVEL=warn")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := <-exited; err != nil {
			t.Error(err)
		}
	})
	url = "http://" + address
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		res, err := http.Get(url + "/readyz")
		if err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return url
			}
		}
		select {
		case err := <-exited:
			exited <- err
			t.Fatalf("the gateway has exited: %v", err)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal(fmt.Errorf("not ready within a minute: %w", err))
		}
	}
}
