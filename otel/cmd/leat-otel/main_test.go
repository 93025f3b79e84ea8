package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
)

// program is set where the test is to be the program.
const program = "LEAT_OTEL_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(program) != "" {
		main()
	}
	os.Exit(m.Run())
}

// The program sends the spans of a turn to the collector that OpenTelemetry's environment variables name, the last ones before it ends.
func TestCollector(t *testing.T) {
	bodies := make(chan string, 100)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		bodies <- string(b)
	}))
	defer collector.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, "serve", "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--agent", "demo?speed=0")
	cmd.Env = append(os.Environ(), program+"=1", "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL, "OTEL_SERVICE_NAME=my-leat", "OTEL_EXPORTER_OTLP_COMPRESSION=none")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	url := ""
	for url == "" && lines.Scan() {
		if m := regexp.MustCompile(`listens on (http://\S+)`).FindStringSubmatch(lines.Text()); m != nil {
			url = m[1]
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	c := &leat.Client{URL: url}
	conversation, err := c.Create(ctx, leat.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Send(ctx, conversation.ID, "6 * 7"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil { // the turn ends within the drain time
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	close(bodies)
	var all strings.Builder
	for b := range bodies {
		all.WriteString(b)
	}
	for _, want := range []string{"leat.turn", "leat.upstream", "leat.commit", "my-leat", conversation.ID} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("the collector got no %q in %d bytes", want, all.Len())
		}
	}
	if strings.Contains(all.String(), "6 * 7") {
		t.Error("the collector got the text")
	}
}
