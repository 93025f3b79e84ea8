//go:build linux

package killer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
)

// peak returns the peak resident memory of a process, in MiB.
func peak(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(b)
	if m == nil {
		t.Fatalf("no peak in %s", b)
	}
	kib, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}

// TestHugeFrames limits the memory for frames of 20 MiB, first one and then seven at the same time.
func TestHugeFrames(t *testing.T) {
	const size = 20 << 20
	frame := append(append([]byte(`data: {"id":"x","model":"m","choices":[{"index":0,"delta":{"content":"`), bytes.Repeat([]byte("x"), size)...), []byte(`"}}]}`+"\n\n")...)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(frame) // a gateway that fails its turn leaves
		_, _ = w.Write([]byte(`data: {"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"))
	}))
	defer upstream.Close()
	p := newProgram(t, t.TempDir(), "--agent", "huge=http:"+upstream.URL+"?dialect=openai-chat")
	if err := p.start(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, p.said())
	}
	c := &leat.Client{URL: p.url()}
	ctx, cancel := context.WithTimeout(t.Context(), 3*calmLimit)
	defer cancel()
	turn := func() {
		conv, err := c.Create(ctx, leat.CreateOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		ack, err := c.Send(ctx, conv.ID, "go")
		if err != nil {
			t.Error(err)
			return
		}
		for {
			var q json.RawMessage
			if err := get(ctx, p.url()+"/api/turns/"+ack.Turn, &q); err != nil {
				t.Error(err)
				return
			}
			if bytes.Contains(q, []byte(`"endedAt"`)) {
				if !bytes.Contains(q, []byte(`"outcome":"completed"`)) {
					t.Errorf("the turn: %s", q)
				}
				return
			}
			time.Sleep(20 * time.Millisecond) // the gateway is another process
		}
	}
	before := peak(t, p.cmd.Process.Pid)
	turn()
	single := peak(t, p.cmd.Process.Pid)
	var all sync.WaitGroup
	for range 7 {
		all.Go(turn)
	}
	all.Wait()
	seven := peak(t, p.cmd.Process.Pid)
	// One frame took 330 MiB without the budget, and 275 with a growing buffer; it takes about 200 now.
	if single > 250 {
		t.Errorf("a frame of 20 MiB takes %d MiB", single)
	}
	// Seven frames took 1,200 MiB without the budget; they take about 550 with it.
	if seven > 800 {
		t.Errorf("seven frames of 20 MiB take %d MiB", seven)
	}
	t.Logf("idle %d MiB, one frame %d MiB, seven at once %d MiB", before, single, seven)
}

// get reads JSON.
func get(ctx context.Context, url string, v any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return json.NewDecoder(res.Body).Decode(v)
}
