package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// Events are delivered once, in order, and their deliveries are then deleted.
func TestDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{t: t}
		h := newHarness(t, nil, 100, map[string]*receiver{"a": r}).start()
		defer h.Close()
		for i := range 3 {
			h.say("c", fmt.Sprint(i))
		}
		synctest.Wait()
		r.want("c/1", "c/2", "c/3")
		if n := h.stored(); n != 0 {
			t.Errorf("%d deliveries are still stored", n)
		}
		g := r.got[0]
		if g.Type != event.MessageAdd || g.Tenant != "t1" || g.Subject != "alice" || g.Message != "c-m1" || g.Role != event.User || g.Source != "native" || g.At == 0 {
			t.Errorf("body %+v", g.Body)
		}
		if n := h.count("leat_webhook_tries_total"); n != 3 {
			t.Errorf("the metric is %v", n)
		}
	})
}

// A refused delivery delays the later ones of its conversation, but no others. It is retried under the same id at growing
// intervals.
func TestRefusalDelaysOnlyItsConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Bool
		bad := &receiver{t: t, answer: func(b *Body) (int, http.Header, error) {
			if b.Conversation == "poison" && !open.Load() {
				return http.StatusInternalServerError, nil, nil
			}
			return http.StatusNoContent, nil, nil
		}}
		good := &receiver{t: t}
		h := newHarness(t, nil, 100, map[string]*receiver{"bad": bad, "good": good}).start()
		defer h.Close()
		h.say("poison", "1")
		synctest.Wait()
		h.say("poison", "2")
		h.say("c", "1")
		synctest.Wait()
		bad.want("poison/1", "c/1")
		good.mu.Lock()
		if len(good.got) != 3 {
			t.Errorf("the other hook got %d deliveries", len(good.got))
		}
		good.mu.Unlock()
		time.Sleep(30 * time.Second) // 1, 2, 4, 8 seconds, each up to a half less
		synctest.Wait()
		n := len(bad.took())
		if n < 6 || n > 8 {
			t.Errorf("%d tries in half a minute: %q", n, bad.took())
		}
		open.Store(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := bad.took(); got[len(got)-1] != "poison/2" || got[len(got)-2] != "poison/1" {
			t.Errorf("order %q", got)
		}
		ids := map[string]bool{}
		for _, g := range bad.got {
			if g.Conversation == "poison" && g.Seq == 1 {
				ids[g.ID] = true
			}
		}
		if len(ids) != 1 {
			t.Errorf("the delivery was sent under %d ids", len(ids))
		}
		if h.stored() != 0 {
			t.Error("deliveries are still stored")
		}
	})
}

// While the receiver is unreachable, one delivery probes it at most a minute apart. Then all are delivered, in order.
func TestUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var up atomic.Bool
		r := &receiver{t: t, answer: func(*Body) (int, http.Header, error) {
			if !up.Load() {
				return 0, nil, errRefused
			}
			return http.StatusOK, nil, nil
		}}
		h := newHarness(t, nil, 100, map[string]*receiver{"a": r}).start()
		defer h.Close()
		for i := range 30 {
			h.say(fmt.Sprint("c", i%10), "x")
		}
		time.Sleep(time.Hour)
		tries := len(r.took())
		if tries > 140 || tries < 55 {
			t.Errorf("%d tries in an hour", tries)
		}
		up.Store(true)
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		got := r.took()[tries:]
		for i := range 10 {
			c := fmt.Sprint("c", i, "/")
			var of []string
			for _, g := range got {
				if strings.HasPrefix(g, c) {
					of = append(of, g)
				}
			}
			if !slices.Equal(of, []string{c + "1", c + "2", c + "3"}) {
				t.Errorf("%s: %q", c, of)
			}
		}
	})
}

// The Retry-After of a receiver is respected to the second, also for deliveries that arrive meanwhile and across a restart.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var busy atomic.Bool
		busy.Store(true)
		answer := func(*Body) (int, http.Header, error) {
			if busy.Swap(false) {
				return http.StatusTooManyRequests, http.Header{"Retry-After": {"90"}}, nil
			}
			return http.StatusOK, nil, nil
		}
		r := &receiver{t: t, answer: answer}
		d := &disk{Journal: memory.New()}
		h := newHarness(t, d, 100, map[string]*receiver{"a": r}).start()
		h.say("c", "1")
		synctest.Wait()
		h.say("d", "1")
		time.Sleep(30 * time.Second)
		r.want("c/1")
		h.Close()
		again := newHarness(t, d, 100, map[string]*receiver{"a": r})
		again.heads = h.heads
		again.start()
		again.say("e", "1")
		time.Sleep(59 * time.Second)
		synctest.Wait()
		r.want("c/1")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := r.took(); len(got) != 4 || r.got[1].at.Sub(begin) < 90*time.Second {
			t.Errorf("delivered %q", got)
		}
		again.Close()
	})
}

// The number of refusals survives a restart, so the intervals continue to grow.
func TestAttemptsSurviveARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{t: t, answer: status(http.StatusGone)}
		d := &disk{Journal: memory.New()}
		heads := map[string]int64{}
		for range 3 {
			h := newHarness(t, d, 100, map[string]*receiver{"a": r})
			h.heads = heads
			h.start()
			if heads["c"] == 0 {
				h.say("c", "1")
			}
			time.Sleep(20 * time.Minute)
			h.Close()
		}
		// 1, 2, 4 … 1024 seconds and then an hour: far fewer attempts than three schedules from the start.
		if n := len(r.took()); n < 10 || n > 14 {
			t.Errorf("%d tries in an hour", n)
		}
	})
}

// A delivery that fails for a day is given up and logged.
func TestGivenUp(t *testing.T) {
	for name, answer := range map[string]func(*Body) (int, http.Header, error){
		"refused":     status(http.StatusNotFound),
		"redirected":  status(http.StatusFound),
		"unreachable": func(*Body) (int, http.Header, error) { return 0, nil, errRefused },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &receiver{t: t, answer: answer}
				h := newHarness(t, nil, 100, map[string]*receiver{"a": r}).start()
				defer h.Close()
				h.say("c", "1")
				time.Sleep(23 * time.Hour)
				if h.stored() != 1 {
					t.Fatal("given up too early")
				}
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				if n := h.count("leat_webhook_dropped_total"); h.stored() != 0 || n != 1 {
					t.Errorf("%d deliveries are stored, %v were dropped", h.stored(), n)
				}
				last := r.got[len(r.got)-1].at
				if n := time.Since(last); n > 2*time.Hour+refusedSchedule.Max {
					t.Errorf("the last attempt was %v ago", n)
				}
			})
		})
	}
}

// A Retry-After beyond a day doesn't prevent a delivery, and the ones after it, from being given up and logged.
func TestRetryAfterYears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{t: t, answer: func(*Body) (int, http.Header, error) {
			return http.StatusBadRequest, http.Header{"Retry-After": {"2000000000"}}, nil
		}}
		h := newHarness(t, nil, 100, map[string]*receiver{"a": r}).start()
		defer h.Close()
		h.say("c", "1")
		synctest.Wait()
		h.say("c", "2")
		time.Sleep(25 * time.Hour)
		synctest.Wait()
		if n := h.count("leat_webhook_dropped_total"); h.stored() != 0 || n != 2 {
			t.Errorf("%d deliveries are stored, %v were dropped", h.stored(), n)
		}
	})
}

// A receiver that doesn't answer delays its conversation, and takes no more than its share of the requests in flight.
func TestReceiverHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{t: t}
		r.answer = func(b *Body) (int, http.Header, error) {
			if strings.HasPrefix(b.Conversation, "slow") {
				time.Sleep(tryLimit)
				return 0, nil, context.DeadlineExceeded
			}
			return http.StatusOK, nil, nil
		}
		h := newHarness(t, nil, 100, map[string]*receiver{"a": r}).start()
		defer h.Close()
		for i := range maxInFlight - 1 {
			h.say(fmt.Sprint("slow", i), "x")
		}
		for range 5 {
			h.say("c", "x")
		}
		synctest.Wait()
		if got := r.took(); len(got) != maxInFlight-1+5 || !slices.Contains(got, "c/5") {
			t.Errorf("delivered %q", got)
		}
		for i := range 20 {
			h.say(fmt.Sprint("slower", i), "x")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if r.top > maxInFlight {
			t.Errorf("%d requests were in flight", r.top)
		}
	})
}

// If the gateway dies after the commit, the next start delivers. If it dies between the answer and the deletion, the delivery
// is repeated under the same id.
func TestCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{t: t}
		h := newHarness(t, nil, 100, map[string]*receiver{"a": r}).start()
		h.Close() // so that nothing is sent
		h.say("c", "1")
		h.say("c", "2")
		if h.stored() != 2 {
			t.Fatalf("%d deliveries are stored", h.stored())
		}
		// This process can't delete what it delivered before it ends.
		dying := newHarness(t, &disk{Journal: h.disk, err: nil}, 100, map[string]*receiver{"a": r})
		r.answer = func(*Body) (int, http.Header, error) {
			dying.disk.fail(journal.ErrClosed)
			return http.StatusOK, nil, nil
		}
		dying.start()
		synctest.Wait()
		dying.end()
		dying.Close()
		r.answer = nil
		before := len(r.took())
		if before == 0 || h.stored() != 2 {
			t.Fatalf("%d arrived, %d are stored", before, h.stored())
		}
		next := newHarness(t, h.disk, 100, map[string]*receiver{"a": r}).start()
		defer next.Close()
		synctest.Wait()
		if got := r.took()[before:]; !slices.Equal(got, []string{"c/1", "c/2"}) || h.stored() != 0 {
			t.Errorf("delivered %q, %d are stored", got, h.stored())
		}
		if r.got[0].ID != r.got[before].ID {
			t.Errorf("ids %s and %s", r.got[0].ID, r.got[before].ID)
		}
	})
}

// On a full disk, no delivery is lost, and none is repeated while the gateway runs.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{t: t}
		h := newHarness(t, nil, 100, map[string]*receiver{"a": r}).start()
		defer h.Close()
		h.say("c", "1")
		synctest.Wait()
		gate := make(chan struct{})
		r.answer = func(*Body) (int, http.Header, error) { <-gate; return http.StatusOK, nil, nil }
		h.say("c", "2")
		h.say("c", "3")
		synctest.Wait()
		h.disk.fail(journal.ErrFull)
		close(gate)
		time.Sleep(10 * time.Minute)
		r.want("c/1", "c/2")
		h.disk.fail(nil)
		time.Sleep(maxPause)
		synctest.Wait()
		r.want("c/1", "c/2", "c/3")
		if h.stored() != 0 {
			t.Error("deliveries are still stored")
		}
	})
}

// Deliveries of a commit with an unknown result are found if it was stored.
func TestUnknownCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{t: t}
		h := newHarness(t, nil, 100, map[string]*receiver{"a": r}).start()
		defer h.Close()
		synctest.Wait()
		for fate, there := range map[error]bool{journal.ErrUnknown: true, journal.ErrFull: false} {
			s := journal.Summary{ID: "c"}
			e := []event.Event{{Seq: 1, Type: event.MessageAdd, Message: "m", Body: &event.Body{Role: event.User}}}
			keys := h.Entries(&s, e)
			if there {
				if err := h.disk.Append(t.Context(), journal.Batch{Conversation: Log, Keys: keys}); err != nil {
					t.Fatal(err)
				}
			}
			h.Finish(keys, fate)
			synctest.Wait()
		}
		r.want("c/1")
	})
}

// At Close, deliveries in flight get a moment to finish. The others are delivered after the next start.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := time.Second
		r := &receiver{t: t}
		r.answer = func(*Body) (int, http.Header, error) { time.Sleep(hang); return http.StatusOK, nil, nil }
		h := newHarness(t, nil, 100, map[string]*receiver{"a": r}).start()
		h.say("c", "1")
		h.say("c", "2")
		synctest.Wait()
		begin := time.Now()
		h.Close()
		if took := time.Since(begin); took != time.Second {
			t.Errorf("took %v", took)
		}
		r.want("c/1")
		if h.stored() != 1 {
			t.Errorf("%d deliveries are stored", h.stored())
		}
		h.Close() // again is harmless
		hang = time.Hour
		again := newHarness(t, h.disk, 100, map[string]*receiver{"a": r}).start()
		synctest.Wait()
		begin = time.Now()
		again.Close()
		if took := time.Since(begin); took < closeLimit || again.stored() != 1 {
			t.Errorf("took %v, %d deliveries are stored", took, again.stored())
		}
	})
}

func TestNoHooks(t *testing.T) {
	h := New(Config{})
	if err := h.Start(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if keys := h.Entries(&journal.Summary{}, []event.Event{{Type: event.TurnEnd}}); keys != nil {
		t.Error(keys)
	}
	h.Close()
}

func TestStartFails(t *testing.T) {
	d := &disk{Journal: memory.New(), err: journal.ErrFull}
	if err := newHarness(t, d, 1, map[string]*receiver{"a": {t: t}}).Start(t.Context(), nil); !errors.Is(err, journal.ErrFull) {
		t.Error(err)
	}
}

// A notice that an answer was not delivered arrives as events do, also if the receiver refuses it first.
func TestDeliveryFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := false
		r := &receiver{t: t, answer: func(b *Body) (int, http.Header, error) {
			if b.Type == DeliveryFailed && !refused {
				refused = true
				return http.StatusInternalServerError, nil, nil
			}
			return http.StatusNoContent, nil, nil
		}}
		h := newHarness(t, nil, 10, map[string]*receiver{"a": r}).start()
		h.say("c", "hello")
		f := Failure{Conversation: "c", Subject: "ann", Channel: "tg", Chat: "7", Seq: 3, Error: event.Error{Code: "undeliverable", Message: "blocked"}}
		if err := h.ReportFailure(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		r.want("c/1", "c/3", "c/3")
		if b := r.got[2].Body; b.Type != DeliveryFailed || b.Channel != "tg" || b.Chat != "7" || b.Subject != "ann" || b.Error == nil || b.Error.Message != "blocked" {
			t.Errorf("%+v", b)
		}
		h.disk.fail(errors.New("the disk is full"))
		if err := h.ReportFailure(t.Context(), f); err == nil {
			t.Error("a notice that could not be stored was accepted")
		}
		h.Close()
	})
}
