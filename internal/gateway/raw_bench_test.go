//go:build unix

package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/elizaactions"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/capture"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/internal/store/journal/sqlite"
	"github.com/leat-dev/leat/transcript"
)

// lineByLine returns one line of a body at a time, as models send them.
type lineByLine struct{ lines [][]byte }

func (l *lineByLine) Read(p []byte) (int, error) {
	if len(l.lines) == 0 {
		return 0, io.EOF
	}
	n := copy(p, l.lines[0])
	l.lines = l.lines[1:]
	return n, nil
}

// processTime returns the CPU time of this process.
func processTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkRecording measures a turn of a thousand chunks, with and without a capture.
func BenchmarkRecording(b *testing.B) {
	var body []byte
	for i := range 1000 {
		body = fmt.Appendf(body, `{"type":"chunk","text":"about that much in a chunk, %d "}`+"\n", i)
	}
	body = append(body, `{"type":"done"}`+"\n"...)
	lines := bytes.SplitAfter(body, []byte("\n"))
	says := agentFunc(func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
		_, err := agent.NewStream(out, elizaactions.Dialect()).ReadFrom(&lineByLine{lines})
		return err
	})
	for _, store := range []string{"memory", "sqlite"} {
		for _, kept := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/kept=%v", store, kept), func(b *testing.B) {
				c := gateway.Config{
					Journal: memory.New(), Dialects: dialect.NewRegistry(elizaactions.Dialect()), DefaultAgent: "a",
					Agents: gateway.Agents{"a": {Agent: says, Secrets: []string{"a-configured-secret"}}},
				}
				check := func(err error) {
					if err != nil {
						b.Fatal(err)
					}
				}
				if store == "sqlite" {
					j, err := sqlite.Open(sqlite.Options{Dir: b.TempDir()})
					check(err)
					defer j.Close()
					c.Journal = j
				}
				if kept {
					var err error
					c.Raw, err = capture.Open(capture.Options{Dir: b.TempDir(), Retention: capture.DefaultRetention, Size: capture.DefaultSize})
					check(err)
				}
				g, err := gateway.New(c)
				check(err)
				check(g.Start(b.Context()))
				b.SetBytes(int64(len(body)))
				before := processTime(b)
				for b.Loop() {
					conv, _, err := g.Create(b.Context(), admin, gateway.CreateOptions{})
					check(err)
					ack, err := g.Do(b.Context(), admin, conv.ID, gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: "go"}})
					check(err)
					f, err := g.Feed(b.Context(), admin, conv.ID)
					check(err)
					for over := false; !over; {
						changed := f.Notify()
						f.View(func(t *transcript.Transcript) { over = !t.Turn(ack.Turn).Unfinished() })
						if !over {
							<-changed
						}
					}
					f.Release()
				}
				check(g.Shutdown(context.Background()))
				check(c.Raw.Close()) // returns after all bytes are written
				b.ReportMetric(float64((processTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
			})
		}
	}
}
