//go:build unix

package killer

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
)

// With a low limit on open files, the gateway accepts only as many streams as leave files for its other work. Further ones get 503, and
// probes and operators are still served.
func TestFewDescriptors(t *testing.T) {
	const token = "a-token-of-a-test"
	p := newProgram(t, t.TempDir())
	p.wrap = []string{"sh", "-c", `ulimit -n 256 && exec "$0" "$@"`}
	p.env = append(p.env, "LEAT_API_TOKEN="+token)
	if err := p.start(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, p.said())
	}
	c := &leat.Client{URL: p.url(), Token: token}
	id := converse(t, c, leat.CreateOptions{}, "count to 3")

	// Each request uses its own connection, and a timeout that only a stuck gateway exceeds.
	get := func(path string) (*http.Response, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		tr := &http.Transport{DisableKeepAlives: true}
		res, err := tr.RoundTrip(req)
		if err != nil {
			cancel()
			return nil, err
		}
		if strings.HasSuffix(path, "/events") && res.StatusCode == http.StatusOK {
			context.AfterFunc(t.Context(), cancel) // it stays open
			return res, nil
		}
		defer cancel()
		_, err = io.Copy(io.Discard, res.Body)
		return res, errors.Join(err, res.Body.Close())
	}
	stream := "/api/conversations/" + id + "/events"
	var open []*http.Response
	refused := 0
	for range 250 {
		res, err := get(stream)
		switch {
		case err != nil:
			t.Fatalf("after %d streams: %v\n%s", len(open), err, p.said())
		case res.StatusCode == http.StatusOK:
			open = append(open, res)
		case res.StatusCode == http.StatusServiceUnavailable && res.Header.Get("Retry-After") != "":
			refused++
		default:
			t.Fatalf("after %d streams: %s", len(open), res.Status)
		}
	}
	t.Logf("%d streams, %d refused", len(open), refused)
	if len(open) < 100 || refused < 20 {
		t.Errorf("%d streams were open and %d refused", len(open), refused)
	}
	for range 20 {
		for _, path := range []string{"/healthz", "/readyz", "/api/agents", "/api/overview", "/metrics", "/api/conversations/" + id} {
			if res, err := get(path); err != nil || res.StatusCode != http.StatusOK {
				t.Errorf("%s: %v %v", path, res, err)
			}
		}
	}
	if n := strings.Count(p.logs.String(), "all connections are in use"); n != 1 {
		t.Errorf("logged %d times", n)
	}
	if strings.Contains(p.logs.String(), "too many open files") {
		t.Error("the process ran out of files")
	}
	if _, err := c.Send(t.Context(), id, "still here?"); err != nil { // an operator can speak with an agent
		t.Error(err)
	}
	for _, res := range open {
		_ = res.Body.Close()
	}
	deadline := time.Now().Add(time.Minute)
	for {
		if res, err := get(stream); err == nil && res.StatusCode == http.StatusOK {
			_ = res.Body.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no stream could be opened after the others were closed")
		}
		time.Sleep(10 * time.Millisecond) // the gateway is another process
	}
}
