//go:build unix

package sqlite_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/sqlite"
)

const conversations = 1000

// stream generates the events of one conversation: turns of appends of about 200 bytes of JSON each.
type stream struct {
	id            string
	turn, message string
	seq, offset   int64
	inTurn, turns int
	length        int // events of a turn
}

var token = strings.Repeat("water ", 5)

// next adds one event and reports whether it ended a turn.
func (s *stream) next(events []event.Event) ([]event.Event, bool) {
	s.seq++
	s.inTurn++
	e := event.Event{Seq: s.seq, At: 1795194262752 + s.seq, Turn: s.turn, Message: s.message}
	switch s.inTurn {
	case 1:
		s.turn, s.message, s.offset = uuid.NewString(), uuid.NewString(), 0
		e.Type, e.Turn, e.Message = event.TurnStart, s.turn, ""
	case 2:
		e.Type, e.Body = event.MessageStart, &event.Body{Role: event.Assistant}
	case 3:
		e.Type, e.Part, e.Body = event.PartStart, "p1", &event.Body{Kind: event.KindText}
	case s.length:
		e.Type, e.Message, e.Body = event.TurnEnd, "", &event.Body{Outcome: event.Completed}
		s.inTurn = 0
		s.turns++
	default:
		e.Type, e.Part, e.Offset, e.Text = event.PartAppend, "p1", s.offset, token
		s.offset += int64(len(token))
	}
	return append(events, e), s.inTurn == 0
}

// streams creates the conversations.
func streams(b *testing.B, j journal.Journal, length int) []*stream {
	out := make([]*stream, conversations)
	var wg sync.WaitGroup
	for i := range out {
		// The turns must not all end at the same time.
		out[i] = &stream{id: fmt.Sprint("c", i), length: length/2 + rand.IntN(length)}
		wg.Go(func() {
			if err := j.Append(context.Background(), journal.Batch{Conversation: out[i].id, Create: true, Summary: &journal.Summary{}}); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	return out
}

// compactor compacts conversations while others append.
type compactor struct {
	work chan func()
	wg   sync.WaitGroup
	n    atomic.Int64
}

func newCompactor(workers int) *compactor {
	s := &compactor{work: make(chan func(), 4*conversations)}
	for range workers {
		s.wg.Go(func() {
			for f := range s.work {
				f()
			}
		})
	}
	return s
}

func (s *compactor) compact(b *testing.B, j journal.Journal, id string, upto int64) {
	s.work <- func() {
		if err := j.Compact(context.Background(), id, upto); err != nil {
			b.Error(err)
		}
		s.n.Add(1)
	}
}

func (s *compactor) wait() {
	close(s.work)
	s.wg.Wait()
}

// BenchmarkAppend appends from 1,000 conversations as fast as possible, with synced commits and one call in flight for each.
func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct {
		name         string
		batch        int
		compact, key bool
	}{
		{"batch=16", 16, false, false},
		{"batch=16/settling", 16, true, false},
		{"batch=50", 50, false, false},
		{"batch=50/settling", 50, true, false},
		{"batch=16/settling/key", 16, true, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			j := open(b, sqlite.Options{})
			defer j.Close()
			all := streams(b, j, 2000)
			s := newCompactor(16)
			var left atomic.Int64
			left.Store(int64(b.N))
			value := []byte(strings.Repeat("s", 300))
			var wg sync.WaitGroup
			start, used := time.Now(), cpu()
			b.ResetTimer()
			for _, st := range all {
				wg.Go(func() {
					events := make([]event.Event, 0, c.batch)
					for left.Add(int64(-c.batch)) > -int64(c.batch) {
						events = events[:0]
						ended := false
						for range c.batch {
							var end bool
							events, end = st.next(events)
							ended = ended || end
						}
						batch := journal.Batch{Conversation: st.id, Expected: st.seq - int64(c.batch), Events: events}
						if c.key {
							batch.Keys = []journal.KeyValue{{Key: "decoder/" + st.id, Value: value}}
						}
						if err := j.Append(context.Background(), batch); err != nil {
							b.Error(err)
							return
						}
						if ended && c.compact {
							s.compact(b, j, st.id, st.seq-int64(st.inTurn))
						}
					}
				})
			}
			wg.Wait()
			appended := time.Since(start)
			s.wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/appended.Seconds(), "events/s")
			b.ReportMetric(float64(cpu()-used)/float64(b.N), "cpu-ns/event")
			b.ReportMetric(float64(time.Since(start)-appended)/1e6, "ms-behind")
			b.ReportMetric(float64(s.n.Load()), "compacted")
		})
	}
}

// BenchmarkAppendPaced appends 50 single events per second in each of 1,000 conversations, and reports the latency.
func BenchmarkAppendPaced(b *testing.B) {
	for _, c := range []struct {
		name         string
		compact, key bool
	}{{"bare", false, false}, {"settling", true, false}, {"settling/key", true, true}} {
		b.Run(c.name, func(b *testing.B) {
			j := open(b, sqlite.Options{})
			defer j.Close()
			all := streams(b, j, 200)
			s := newCompactor(16)
			each := max(1, b.N/conversations)
			took := make([][]time.Duration, conversations)
			value := []byte(strings.Repeat("s", 300))
			var wg sync.WaitGroup
			used := cpu()
			b.ResetTimer()
			for i, st := range all {
				wg.Go(func() {
					time.Sleep(rand.N(20 * time.Millisecond))
					tick := time.NewTicker(20 * time.Millisecond)
					defer tick.Stop()
					for range each {
						<-tick.C
						events, ended := st.next(nil)
						batch := journal.Batch{Conversation: st.id, Expected: st.seq - 1, Events: events}
						if c.key {
							batch.Keys = []journal.KeyValue{{Key: "decoder/" + st.id, Value: value}}
						}
						start := time.Now()
						if err := j.Append(context.Background(), batch); err != nil {
							b.Error(err)
							return
						}
						took[i] = append(took[i], time.Since(start))
						if ended && c.compact {
							s.compact(b, j, st.id, st.seq)
						}
					}
				})
			}
			wg.Wait()
			s.wait()
			b.StopTimer()
			b.ReportMetric(float64(cpu()-used)/float64(each*conversations), "cpu-ns/event")
			lat := slices.Concat(took...)
			slices.Sort(lat)
			for _, q := range []float64{0.5, 0.99, 0.999} {
				b.ReportMetric(float64(lat[int(q*float64(len(lat)-1))])/1e6, fmt.Sprintf("p%g-ms", 100*q))
			}
			b.ReportMetric(float64(s.n.Load()), "compacted")
		})
	}
}

// BenchmarkAppendDuringBackup appends single events from 20 conversations while a store of about 200 MB is backed up
// repeatedly, and reports the latency.
func BenchmarkAppendDuringBackup(b *testing.B) {
	for _, backup := range []bool{false, true} {
		b.Run(fmt.Sprint("backup=", backup), func(b *testing.B) {
			j := open(b, sqlite.Options{Logger: quiet})
			defer j.Close()
			all := streams(b, j, 2000)[:20]
			for range 20 {
				for _, st := range all {
					var events []event.Event
					for range 10_000 {
						events, _ = st.next(events)
					}
					if err := j.Append(context.Background(), journal.Batch{Conversation: st.id, Expected: st.seq - int64(len(events)), Events: events}); err != nil {
						b.Fatal(err)
					}
				}
			}
			ctx, stop := context.WithCancel(context.Background())
			var beside, wg sync.WaitGroup
			copies := 0
			if backup {
				dir := b.TempDir()
				beside.Go(func() {
					for ctx.Err() == nil {
						if err := j.Backup(ctx, filepath.Join(dir, fmt.Sprint(copies))); err == nil {
							copies++
						} else if ctx.Err() == nil {
							b.Error(err)
							return
						}
					}
				})
			}
			took := make([][]time.Duration, len(all))
			b.ResetTimer()
			for i, st := range all {
				wg.Go(func() {
					for range max(1, b.N/len(all)) {
						events, _ := st.next(nil)
						start := time.Now()
						if err := j.Append(context.Background(), journal.Batch{Conversation: st.id, Expected: st.seq - 1, Events: events}); err != nil {
							b.Error(err)
							return
						}
						took[i] = append(took[i], time.Since(start))
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			stop()
			beside.Wait()
			lat := slices.Concat(took...)
			slices.Sort(lat)
			for _, q := range []float64{0.5, 0.99, 1} {
				b.ReportMetric(float64(lat[int(q*float64(len(lat)-1))])/1e6, fmt.Sprintf("p%g-ms", 100*q))
			}
			b.ReportMetric(float64(copies), "copies")
		})
	}
}

// cpu returns the processor time of this process. Unlike the wall clock, it doesn't depend on the load of the machine.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
