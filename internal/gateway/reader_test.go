package gateway_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/internal/store/journal/sqlite"
	"github.com/leat-dev/leat/transcript"
)

// countingJournal counts the reads of keys. Every look-up of a conversation reads one, and the compactor reads none.
type countingJournal struct {
	journal.Journal
	reads atomic.Int64
}

func (j *countingJournal) Get(ctx context.Context, key string) ([]byte, error) {
	j.reads.Add(1)
	return j.Journal.Get(ctx, key)
}

func TestResumeOfALoadedFeedReadsNothing(t *testing.T) {
	j := &countingJournal{Journal: memory.New()}
	h := newTestGateway(t, j, silentAgents(), nil)
	defer h.close()
	conv := h.create(alice)
	h.share(conv, guest.Subject, gateway.AccessRead)
	first, err := h.Feed(t.Context(), alice, conv)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Release()
	reads := j.reads.Load()
	resume := func(p gateway.Principal) error {
		f, err := h.Feed(t.Context(), p, conv)
		if err == nil {
			_, err = f.Poll(t.Context(), "", 0)
			f.Release()
		}
		return err
	}
	for _, p := range []gateway.Principal{alice, guest, admin, alice} {
		if err := resume(p); err != nil {
			t.Errorf("%s: %v", p.Subject, err)
		}
	}
	if n := j.reads.Load() - reads; n != 0 {
		t.Errorf("%d reads of the journal", n)
	}
	for _, p := range []gateway.Principal{bob, aliceT2} {
		if err := resume(p); !errors.Is(err, gateway.ErrNotFound) {
			t.Errorf("%s: %v", p.Subject, err)
		}
	}
	h.share(conv, bob.Subject, gateway.AccessRead) // wakes no readers
	if err := resume(bob); err != nil {
		t.Errorf("bob after the conversation was shared: %v", err)
	}
}

// TestChangesOfAccessApplyAtOnce changes access while many readers come and go. As soon as a change has returned, it must apply to
// every request.
func TestChangesOfAccessApplyAtOnce(t *testing.T) {
	for range 3 {
		h := newTestGateway(t, nil, silentAgents(), nil)
		conv := h.create(alice)
		ctx, stop := context.WithCancel(t.Context())
		var crowd sync.WaitGroup
		for _, p := range []gateway.Principal{alice, admin, guest, guest} { // they fill the cache at all times
			crowd.Go(func() {
				for ctx.Err() == nil {
					if f, err := h.Feed(ctx, p, conv); err == nil {
						_, _ = f.Poll(ctx, "", 0)
						f.Release()
					}
				}
			})
		}
		may := func(want error) {
			t.Helper()
			f, err := h.Feed(t.Context(), guest, conv)
			if !errors.Is(err, want) {
				t.Errorf("the guest reads: %v, want %v", err, want)
			}
			if err == nil {
				f.Release()
			}
		}
		for range 30 {
			h.share(conv, guest.Subject, gateway.AccessRead)
			may(nil)
			h.unshare(conv, guest.Subject)
			may(gateway.ErrNotFound)
		}
		h.share(conv, guest.Subject, gateway.AccessRead)
		if err := h.try(alice, conv, gateway.Command{Type: gateway.CommandDelete}); err != nil {
			t.Error(err)
		}
		may(gateway.ErrNotFound)
		if _, err := h.Feed(t.Context(), alice, conv); !errors.Is(err, gateway.ErrNotFound) {
			t.Errorf("the owner reads a deleted conversation: %v", err)
		}
		stop()
		crowd.Wait()
		h.close()
	}
}

// BenchmarkResume measures one of many readers that return to a running turn after 1,000 events, with the same cursor.
func BenchmarkResume(b *testing.B) {
	disk, err := sqlite.Open(sqlite.Options{Dir: b.TempDir(), Sync: sqlite.Normal})
	if err != nil {
		b.Fatal(err)
	}
	written, release := make(chan error, 1), make(chan struct{})
	writes := agentFunc(func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
		var err error
		for range 2000 {
			err = errors.Join(err, out.Text("some words of an answer "), out.Flush()) // an event each
		}
		written <- err
		<-release
		return nil
	})
	g, err := gateway.New(gateway.Config{Journal: disk, Agents: one(writes), DefaultAgent: "a"})
	if err == nil {
		err = g.Start(b.Context())
	}
	if err != nil {
		b.Fatal(err)
	}
	s, _, err := g.Create(b.Context(), alice, gateway.CreateOptions{})
	if err == nil {
		_, err = g.Do(b.Context(), alice, s.ID, gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: "go"}})
	}
	if err := errors.Join(err, <-written); err != nil {
		b.Fatal(err)
	}
	first, err := g.Feed(b.Context(), alice, s.ID)
	if err != nil {
		b.Fatal(err)
	}
	c := first.CursorAt(first.Head() - 1000)
	b.ReportAllocs()
	for b.Loop() {
		f, err := g.Feed(b.Context(), alice, s.ID)
		if err != nil {
			b.Fatal(err)
		}
		batch, err := f.Poll(b.Context(), c, 1<<20)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := batch.Encode(feed.SSE); err != nil {
			b.Fatal(err)
		}
		f.View(func(*transcript.Transcript) {})
		f.Release()
	}
	first.Release()
	close(release)
	if err := errors.Join(g.Shutdown(context.Background()), disk.Close()); err != nil {
		b.Fatal(err)
	}
}
