//go:build unix

package telegram

import (
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	fake "github.com/leat-dev/leat/chattest/telegram"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel/channeltest"
	"github.com/leat-dev/leat/internal/channel/live"
)

// BenchmarkChats streams answers of 600 words to 1,000 private chats at once, for 20 s each, and measures what that costs in this
// process, the fake included, and how long after the end of a turn its answer is there. "limited" has Telegram's limit for a bot, which
// 1,000 chats exceed by far; with "unlimited" only the limits of each chat count.
//
//	go test -run '^$' -bench Chats -benchtime 1x ./internal/channel/telegram
func BenchmarkChats(b *testing.B) {
	for name, gap := range map[string]time.Duration{"limited": botGap, "unlimited": time.Microsecond} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				streamToChats(b, gap)
			}
		})
	}
}

const (
	benchChats = 1000
	benchTime  = 20 * time.Second
	benchStep  = 200 * time.Millisecond
)

func streamToChats(b *testing.B, gap time.Duration) {
	c, server := newBot(fake.Options{})
	c.Bot = live.NewBot("bot", rules, gap, slog.New(slog.DiscardHandler))
	for i := range benchChats {
		server.Say(fake.Private(int64(i+1), "Ann"), "hello")
	}
	cpu, began := cpuTime(b), time.Now()
	var mu sync.Mutex
	var delays []time.Duration
	var heap runtime.MemStats
	var wg sync.WaitGroup
	for i := range benchChats {
		wg.Go(func() {
			s := channeltest.NewStory(b, "turn")
			done := deliver(b.Context(), c, place{chat: int64(i + 1)}, &channeltest.State{}, s)
			time.Sleep(time.Duration(i) * benchStep / benchChats)
			s.Begin()
			s.OpenText()
			for range benchTime / benchStep {
				s.Write("six words in every single step. ")
				time.Sleep(benchStep)
			}
			ended := time.Now()
			s.End(event.Completed)
			err := <-done
			mu.Lock()
			defer mu.Unlock()
			delays = append(delays, time.Since(ended))
			if err != nil {
				b.Error(err)
			}
		})
	}
	time.Sleep(benchTime / 2)
	runtime.ReadMemStats(&heap)
	wg.Wait()
	for i := range benchChats {
		if m := server.Visible(int64(i + 1)); len(m) != 1 || strings.Count(m[0].Text, "step.") != int(benchTime/benchStep) {
			b.Fatalf("chat %d shows %d messages", i+1, len(m))
		}
	}
	slices.Sort(delays)
	b.ReportMetric(float64(cpuTime(b)-cpu)/float64(time.Millisecond)/time.Since(began).Seconds()/benchChats, "ms-cpu/chat-s")
	b.ReportMetric(float64(heap.HeapAlloc)/(1<<20), "MiB-heap")
	b.ReportMetric(float64(len(server.Requests()))/benchChats, "requests/chat")
	b.ReportMetric(float64(delays[len(delays)/2])/float64(time.Millisecond), "ms-final-p50")
	b.ReportMetric(float64(delays[len(delays)*99/100])/float64(time.Millisecond), "ms-final-p99")
}

// cpuTime returns the time that the process has used on all cores.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
