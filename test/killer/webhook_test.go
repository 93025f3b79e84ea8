//go:build unix

package killer

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/signature"
	"github.com/leat-dev/leat/internal/base/signature/signaturetest"
	"github.com/leat-dev/leat/internal/service/webhook"
	"github.com/leat-dev/leat/internal/store/journal/sqlite"
)

const hookSecret = "0123456789abcdef0123456789abcdef"

// hooked receives webhooks, refuses some and drops the responses to others.
type hooked struct {
	t *testing.T

	mu    sync.Mutex
	rng   *rand.Rand
	calm  bool              // it takes all
	ids   map[string]string // event: id
	taken map[string][]int64
	again int // that came though they had been taken
}

func (h *hooked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return // the gateway was killed while it sent
	}
	if err := signaturetest.Verify(hookSecret, r.Header.Get(signature.Header), b, time.Now(), 0); err != nil {
		h.t.Error(err)
	}
	var d webhook.Body
	if err := json.Unmarshal(b, &d); err != nil {
		h.t.Errorf("%v: %s", err, b)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	what := fmt.Sprint(d.Type, " ", d.Conversation, "/", d.Seq)
	if id, ok := h.ids[what]; ok && id != d.ID {
		h.t.Errorf("%s came as %s and as %s", what, id, d.ID)
	}
	h.ids[what] = d.ID
	fate := h.rng.IntN(20)
	if fate == 0 && !h.calm {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	switch seqs := h.taken[d.Conversation]; {
	case len(seqs) == 0 || d.Seq > seqs[len(seqs)-1]:
		h.taken[d.Conversation] = append(seqs, d.Seq)
	case d.Seq == seqs[len(seqs)-1]:
		h.again++
	default:
		h.t.Errorf("%s came after %d had been taken", what, seqs[len(seqs)-1])
	}
	if fate == 1 && !h.calm {
		w.WriteHeader(http.StatusBadGateway) // it was taken, and its sender does not know
	}
}

// await returns when the given number of events was accepted.
func (h *hooked) await(n int) {
	h.t.Helper()
	for late := time.Now().Add(calmLimit); ; time.Sleep(time.Millisecond) { // polls another process
		got := 0
		h.mu.Lock()
		for _, seqs := range h.taken {
			got += len(seqs)
		}
		h.mu.Unlock()
		switch {
		case got >= n:
			return
		case time.Now().After(late):
			h.t.Fatalf("got only %d of %d events", got, n)
		}
	}
}

// TestKillerWebhooks kills the program during deliveries. Each event is delivered at least once, with one id, in order.
func TestKillerWebhooks(t *testing.T) {
	kills := 3
	if os.Getenv("LEAT_FULL") != "" {
		kills = 40
	}
	s := seed(t)
	t.Logf("seed %d", s)
	h := &hooked{t: t, rng: rand.New(rand.NewPCG(s, 1)), ids: map[string]string{}, taken: map[string][]int64{}}
	receiver := httptest.NewServer(h)
	defer receiver.Close()
	p := newProgram(t, t.TempDir(), "--agent", "demo?speed=0")
	p.env = append(p.env, `LEAT_WEBHOOKS=[{name: all, url: "`+receiver.URL+`", secret: `+hookSecret+`, content: true, allow_private: true}]`)
	c := begin(t, p)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var talkers sync.WaitGroup
	ids := []string{"a", "b", "c", "d"}
	for _, id := range ids {
		if _, err := c.Create(t.Context(), leat.CreateOptions{ID: id}); err != nil {
			t.Fatal(err)
		}
		talkers.Go(func() {
			for ctx.Err() == nil {
				ack, err := c.Send(ctx, id, "What is 6 * 7?")
				if err == nil {
					// The turn's end, so that turns do not pile up; it may be cut by a kill.
					_ = c.Follow(ctx, id, func(u leat.Update) error {
						if q := u.Transcript.Turn(ack.Turn); q == nil || q.Unfinished() {
							return nil
						}
						return leat.ErrStop
					})
				}
			}
		})
	}
	times := rand.New(rand.NewPCG(s, 2))
	for i := range kills {
		h.await(4 * (i + 1))
		time.Sleep(50*time.Millisecond + time.Duration(times.Int64N(int64(400*time.Millisecond)))) // what is killed is another process
		if err := p.end(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if err := p.start(t.Context()); err != nil {
			t.Fatalf("%v\n%s", err, p.said())
		}
	}
	stop()
	talkers.Wait()
	h.mu.Lock()
	h.calm = true
	h.mu.Unlock()
	late := time.Now().Add(calmLimit)
	for {
		if err := p.end(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		owed, waiting := owedAndWaiting(t, p.data, ids)
		h.mu.Lock()
		var missing []string
		for _, id := range ids {
			if !slices.Equal(h.taken[id], owed[id]) {
				missing = append(missing, fmt.Sprintf("%s: took %d of %d", id, len(h.taken[id]), len(owed[id])))
			}
		}
		again := h.again
		h.mu.Unlock()
		if len(missing) == 0 && waiting == 0 {
			n := 0
			for _, seqs := range owed {
				n += len(seqs)
			}
			t.Logf("%d deliveries over %d kills, %d of them came again", n, kills, again)
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%d wait; %s\n%s", waiting, strings.Join(missing, ", "), p.said())
		}
		if err := p.start(t.Context()); err != nil {
			t.Fatalf("%v\n%s", err, p.said())
		}
		time.Sleep(time.Second) // as above
	}
}

// owedAndWaiting reads from the data folder which events require a delivery, and how many deliveries wait.
func owedAndWaiting(t *testing.T, data string, ids []string) (owed map[string][]int64, waiting int) {
	t.Helper()
	j, err := sqlite.Open(sqlite.Options{Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}()
	owed = map[string][]int64{}
	for _, id := range ids {
		r, err := j.Read(t.Context(), id, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i := range r.Events {
			if e := &r.Events[i]; e.Type == event.MessageAdd || e.Type == event.TurnEnd || e.Type == event.TurnWait {
				owed[id] = append(owed[id], e.Seq)
			}
		}
	}
	keys, err := j.Keys(t.Context(), webhook.Prefix)
	if err != nil {
		t.Fatal(err)
	}
	return owed, len(keys)
}
