package leat_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/test/badnet"
	"github.com/leat-dev/leat/transcript"
)

func TestBadNetwork(t *testing.T) {
	t.Parallel()
	badNetwork(t, 20)
}

func TestBadNetworkFull(t *testing.T) {
	if os.Getenv("LEAT_FULL") == "" {
		t.Skip("SKIPPED: set LEAT_FULL=1 to have a client cut 200 times")
	}
	t.Parallel()
	badNetwork(t, 200)
}

// badNetwork has a client follow a turn, and send messages meanwhile, while its stream is cut that often at random bytes. It
// ends with the exact transcript, and each message was taken once.
func badNetwork(t *testing.T, cuts int) {
	h := newHouse(t, "")
	id := h.create()
	ack, err := h.Send(t.Context(), id, "tell")
	if err != nil {
		t.Fatal(err)
	}
	target := strings.TrimSuffix(strings.TrimPrefix(h.URL, "http://"), "/")
	proxy, err := badnet.Listen(target, badnet.Faults{Seed: uint64(cuts), Total: -1, MeanBytes: 4 << 10, Stall: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	c := &leat.Client{URL: "http://" + proxy.Addr(), HTTP: &http.Client{Transport: transport}}

	// Somebody who presses "try again" most of the time, so that the test does not take as long as the waits.
	hurry := make(chan struct{}, 1)
	// The agent speaks as far as something is heard of the reader, so that how much it says is not the machine's speed to say.
	heard := make(chan struct{}, 1)
	hear := func() {
		select {
		case heard <- struct{}{}:
		default:
		}
	}
	var lost atomic.Int64 // cuts of the stream; the network counts those of other connections too
	o := leat.FollowOptions{Hurry: hurry, OnDisconnect: func(error, time.Duration) {
		hear()
		if lost.Add(1)%8 != 0 {
			select {
			case hurry <- struct{}{}:
			default:
			}
		}
	}}
	var last []byte  // the transcript as the reader holds it in the end
	var first string // its first message: a reader that a snapshot put up to date holds a window of the conversation
	seen := ""
	followed := make(chan error, 1)
	go func() {
		followed <- c.FollowWith(t.Context(), id, o, func(u leat.Update) error {
			hear()
			text := u.Transcript.Visible(ack.Turn)
			if !strings.HasPrefix(text, seen) {
				return fmt.Errorf("what was seen is un-said: %d bytes, and then %d others", len(seen), len(text))
			}
			seen = text
			turn := u.Transcript.Turn(ack.Turn)
			if turn == nil || turn.Unfinished() || len(u.Transcript.Turns) < 4 {
				return nil
			}
			for _, turn := range u.Transcript.Turns {
				if turn.Unfinished() {
					return nil
				}
			}
			b, err := json.Marshal(u.Transcript.Snapshot(0))
			if err != nil {
				return err
			}
			last, first = b, u.Transcript.Messages[0].ID
			return leat.ErrStop
		})
	}()

	told := make(chan leat.Ack, 3)
	box, err := leat.OpenOutbox(c, "", func(_ leat.Outgoing, a leat.Ack, err error) {
		if err != nil {
			t.Error(err)
		}
		told <- a
	})
	if err != nil {
		t.Fatal(err)
	}
	stopBox := runOutbox(t, box)
	for i := range 3 {
		if _, err := box.Send(id, "asker", leat.Message{Text: fmt.Sprint("question ", i)}); err != nil {
			t.Fatal(err)
		}
	}
	said := ""
	for i := 0; lost.Load() < int64(cuts) && proxy.Cuts() < 10*cuts; i++ {
		word := fmt.Sprintf("%d %s ", i, strings.Repeat([]string{"words", "é ß", "漢字", "😀"}[i%4], 40))
		h.say(word)
		said += word
		if i%4 == 3 {
			select {
			case <-heard:
			case <-time.After(2 * waitLimit):
				t.Fatalf("nothing is heard of the reader, after %d cuts", lost.Load())
			}
		}
	}
	proxy.Mend()
	close(h.words)
	turns := map[string]bool{}
	for range 3 {
		a := <-told
		turns[a.Turn] = true
		answerTurn(t, h, id, a.Turn)
	}
	stopBox()
	if err := <-followed; err != nil {
		t.Fatal(err)
	}
	if seen != said {
		t.Errorf("the reader saw %d bytes, %d were said", len(seen), len(said))
	}
	if len(turns) != 3 {
		t.Errorf("turns of three messages: %v", turns)
	}
	whole := allOf(t, h.Client, id)
	from := slices.IndexFunc(whole.Messages, func(m *transcript.Message) bool { return m.ID == first })
	if from < 0 {
		t.Fatalf("the reader's first message %q is not in the conversation", first)
	}
	want, err := json.Marshal(whole.Snapshot(from))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(last)); d != "" {
		t.Errorf("-gateway +reader\n%s", d)
	}
	if n := lost.Load(); n < int64(cuts) {
		t.Errorf("the stream was lost %d times only", n)
	}
	t.Logf("%d cuts, %d of the stream; %d bytes", proxy.Cuts(), lost.Load(), len(said))
}

// allOf is a conversation from its first message on: a long answer fills the window of a snapshot, and pages bring the rest.
func allOf(t *testing.T, c *leat.Client, id string) *transcript.Transcript {
	t.Helper()
	whole, err := c.Transcript(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for whole.Earlier {
		before := whole.Messages[0].ID
		p, err := c.Page(t.Context(), id, before, 0)
		if err != nil {
			t.Fatal(err)
		}
		if !whole.AddPage(p.Transcript, before, whole.Seq) {
			t.Fatalf("the page before %s does not fit", before)
		}
	}
	return whole
}

// answerTurn answers what a turn asks, once it does.
func answerTurn(t *testing.T, h *house, id, turn string) {
	t.Helper()
	err := h.Follow(t.Context(), id, func(u leat.Update) error {
		tr := u.Transcript.Turn(turn)
		if tr == nil || len(tr.Requests) == 0 {
			return nil
		}
		if _, err := h.Answer(t.Context(), id, turn, tr.Requests[0].ID, event.Approve, ""); err != nil {
			return err
		}
		return leat.ErrStop
	})
	if err != nil {
		t.Fatal(err)
	}
}

// runOutbox runs it until the function that is returned is called, or the test ends.
func runOutbox(t *testing.T, box *leat.Outbox) (stop func()) {
	t.Helper()
	ctx, cancel := contextWithStop(t)
	done := make(chan error, 1)
	go func() { done <- box.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel(errStopped)
		if err := <-done; !errors.Is(err, errStopped) {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return stop
}
