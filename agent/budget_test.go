package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/event"
)

// slowSink needs a second to make operations durable.
type slowSink struct{ log func(string) }

func (slowSink) Emit(context.Context, []event.Event, json.RawMessage) error { return nil }

func (s slowSink) Flush(context.Context) error {
	time.Sleep(time.Second)
	s.log("durable")
	return nil
}

func (slowSink) Wait(context.Context, event.Request) (event.Answer, error) {
	return event.Answer{}, errors.New("no user")
}

func (slowSink) ReportProgress() {}

// Large frames are decoded one at a time, until each is durable. Small ones don't wait.
func TestLargeFramesAreDecodedOneByOne(t *testing.T) {
	kept := frames
	defer func() { frames = kept }()
	synctest.Test(t, func(t *testing.T) {
		frames = &budget{lane: make(chan struct{}, 1)} // the channel must belong to this synctest bubble
		var mu sync.Mutex
		var events []string
		log := func(s string) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, s)
		}
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if err := NewEmitter(t.Context(), slowSink{log}).WithLargeFrame(LargeFrame+1, func() error { log("decoded"); return nil }); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if err := NewEmitter(t.Context(), slowSink{log}).WithLargeFrame(LargeFrame, func() error { log("small"); return nil }); err != nil {
			t.Error(err)
		}
		all.Wait()
		if want := []string{"decoded", "small", "durable", "decoded", "durable", "decoded", "durable"}; !slices.Equal(events, want) {
			t.Errorf("%q, want %q", events, want)
		}
	})
}

// A turn that ends while it waits to decode a large frame stops waiting.
func TestLargeFramesWaitNoLongerThanTheirTurn(t *testing.T) {
	kept := frames
	defer func() { frames = kept }()
	synctest.Test(t, func(t *testing.T) {
		frames = &budget{lane: make(chan struct{}, 1)} // the channel must belong to this synctest bubble
		hold := make(chan struct{})
		var first sync.WaitGroup
		first.Go(func() {
			_ = NewEmitter(t.Context(), slowSink{func(string) {}}).WithLargeFrame(LargeFrame+1, func() error { <-hold; return nil })
		})
		synctest.Wait()
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(ErrTurnOver) })
		err := NewEmitter(ctx, slowSink{}).WithLargeFrame(LargeFrame+1, func() error { t.Error("it was decoded"); return nil })
		if !errors.Is(err, ErrTurnOver) {
			t.Error(err)
		}
		close(hold)
		first.Wait()
	})
}

// All readers together reserve at most the budget.
func TestHold(t *testing.T) {
	var all [20]Reservation
	held := 0
	for i := range all {
		for n := 0; n <= 20<<20; n += 32 << 10 {
			if err := all[i].Resize(n); err != nil {
				if !errors.Is(err, ErrBusy) || held < 10 {
					t.Fatalf("reader %d at %d bytes: %v", i, n, err)
				}
				held = -1
				break
			}
		}
		if held < 0 {
			break
		}
		held++
	}
	if held >= 0 || frames.reserved > maxReserved {
		t.Errorf("%d readers, %d bytes are held", held, frames.reserved)
	}
	for i := range all {
		if err := all[i].Resize(i); err != nil { // their frames are complete
			t.Error(err)
		}
	}
	if frames.reserved != 0 {
		t.Errorf("%d bytes are held in the end", frames.reserved)
	}
}

// A message of a socket is reserved while it arrives and until the next one. It fails if others have used up the budget.
func TestReadMessage(t *testing.T) {
	const size = 20 << 20
	message := bytes.Repeat([]byte("0123456789abcde\n"), size/16)
	var hold Reservation
	for _, n := range []int{size, 100, 0, LargeFrame + 1, 511, 512, 513, chunkSize} {
		b, err := ReadMessage(iotest.HalfReader(bytes.NewReader(message[:n])), &hold)
		if err != nil || !bytes.Equal(b, message[:n]) {
			t.Errorf("%d of %d bytes, %v", len(b), n, err)
		}
		if large := n > LargeFrame; large != (frames.reserved >= n && n > 0) || !large && frames.reserved != 0 {
			t.Errorf("%d bytes are held for a message of %d", frames.reserved, n)
		}
	}
	var others Reservation
	if err := others.Resize(maxReserved - size/2); err != nil {
		t.Fatal(err)
	}
	if b, err := ReadMessage(bytes.NewReader(message), &hold); !errors.Is(err, ErrBusy) || b != nil {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	others.Release()
	if b, err := ReadMessage(io.MultiReader(bytes.NewReader(message), iotest.ErrReader(io.ErrUnexpectedEOF)), &hold); !errors.Is(err, io.ErrUnexpectedEOF) || b != nil {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	hold.Release()
	if frames.reserved != 0 {
		t.Errorf("%d bytes are held in the end", frames.reserved)
	}
}
