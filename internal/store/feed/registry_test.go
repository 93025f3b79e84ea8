package feed

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
)

func TestAcquireLoadsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		enter := make(chan struct{})
		log := &fakeLog{epoch: "e", onRead: func() { <-enter }}
		log.append(message("u", "a"))
		reg := NewRegistry(log, Config{})
		feeds := make(chan *Feed, 10)
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				f, err := reg.Acquire(t.Context(), "c")
				if err != nil {
					t.Error(err)
				}
				feeds <- f
			})
		}
		// A caller that stops waiting doesn't block the others.
		ctx, cancel := context.WithCancel(t.Context())
		wg.Go(func() {
			if f, err := reg.Acquire(ctx, "c"); err == nil {
				feeds <- f
			}
		})
		synctest.Wait()
		cancel()
		close(enter)
		wg.Wait()
		close(feeds)
		first := <-feeds
		for f := range feeds {
			if f != first {
				t.Error("two feeds of one conversation")
			}
			f.Release()
		}
		if log.reads > 2 || reg.Len() != 1 {
			t.Errorf("%d reads, %d feeds", log.reads, reg.Len())
		}
		first.Release()
	})
}

func TestAcquireFails(t *testing.T) {
	log := &fakeLog{}
	reg := NewRegistry(log, Config{})
	if _, err := reg.Acquire(t.Context(), "c"); !errors.Is(err, errNotFound) {
		t.Errorf("unknown: %v", err)
	}
	if reg.Len() != 0 {
		t.Error("a feed that was not loaded stays in memory")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	log.epoch = "e"
	if _, err := reg.Acquire(ctx, "c"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	reg.Close()
	if _, err := reg.Acquire(t.Context(), "c"); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

func TestIdleFeeds(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	log.append(message("u", "a"))
	reg, f := open(t, log, Config{Idle: 2})
	f.Release()
	again := func() *Feed {
		t.Helper()
		f, err := reg.Acquire(t.Context(), "c")
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if g := again(); g != f {
		t.Error("the idle feed was not reused")
	}
	if log.reads != 2 {
		t.Errorf("%d reads, want the load and one check", log.reads)
	}
	f.Release()
	// Changes while the feed was idle are noticed.
	log.append(message("v", "b"))
	f = again()
	if f.Head() != 2 || len(poll(t, f, "", 0).Snapshot.Messages) != 2 {
		t.Errorf("head %d", f.Head())
	}
	f.Release()
	log.epoch = "e2"
	f = again()
	if f.Cursor() != "e2.2" {
		t.Errorf("cursor %s", f.Cursor())
	}
	f.Release()
	for _, id := range []string{"d", "e", "f"} {
		g, err := reg.Acquire(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		g.Release()
	}
	if reg.Len() != 2 {
		t.Errorf("%d feeds are in memory, want 2", reg.Len())
	}
	defer func() {
		if recover() == nil {
			t.Error("a feed can be released twice")
		}
	}()
	f.Release()
}

func TestRegistryForwards(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	reg, f := open(t, log, Config{})
	publish(t, log, f, message("u", "a"), message("v", "b"))
	reg.Compacted("c", 2)
	reg.Compacted("other", 2)
	f.Release()
	log.trim(1)
	f, err := reg.Acquire(t.Context(), "c") // compares the idle feed with the log, which has been trimmed
	if err != nil {
		t.Fatal(err)
	}
	defer f.Release()
	if b := poll(t, f, NewCursor("e", 0), 0); !b.Reset || len(b.Snapshot.Messages) != 1 || b.Snapshot.Earlier {
		t.Errorf("%s", encoded(t, b, JSON))
	}
	if b := poll(t, f, NewCursor("e", 1), 0); b.Reset {
		t.Errorf("%s", encoded(t, b, JSON))
	}
	reg.Close()
	if _, err := f.Poll(t.Context(), f.Cursor(), 0); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
}
