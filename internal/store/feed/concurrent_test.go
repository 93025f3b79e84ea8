package feed

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// TestReadersDuringPublish runs readers that poll, page and reload while events are published and compacted.
func TestReadersDuringPublish(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	reg, f := open(t, log, Config{TailEvents: 20, Window: transcript.Limits{Messages: 4}, Idle: 1})
	const turns, words = 30, 40
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(done)
		defer f.Release()
		for i := range turns {
			id := fmt.Sprint(i)
			publish(t, log, f, message("u"+id, "q"), event.Event{Type: event.TurnStart, Turn: "t" + id, Body: &event.Body{Answers: "u" + id}},
				event.Event{Type: event.MessageStart, Turn: "t" + id, Message: "m" + id, Body: &event.Body{Role: event.Assistant}},
				event.Event{Type: event.PartStart, Turn: "t" + id, Message: "m" + id, Part: "p", Body: &event.Body{Kind: event.KindStatus}})
			length := 0
			for j := range words {
				e := event.Event{Type: event.PartAppend, Turn: "t" + id, Message: "m" + id, Part: "p", Offset: int64(length), Text: fmt.Sprint(j), Note: fmt.Sprint(j)}
				length += len(e.Text)
				publish(t, log, f, e)
			}
			publish(t, log, f, event.Event{Type: event.TurnEnd, Turn: "t" + id, Body: &event.Body{Outcome: event.Completed}})
			if i%3 == 0 {
				log.compact()
				f.setCompacted(log.head)
			}
		}
	})
	final := make([]string, 8)
	for i := range final {
		wg.Go(func() {
			g, err := reg.Acquire(t.Context(), "c")
			if err != nil {
				t.Error(err)
				return
			}
			defer g.Release()
			var tr transcript.Transcript
			var c Cursor
			for n := 0; ; n++ {
				var b *Batch
				select {
				case <-done:
					b, err = g.Poll(t.Context(), c, 50*i)
				default:
					b, err = g.Next(t.Context(), c, 50*i)
				}
				if err != nil {
					t.Error(err)
					return
				}
				if b == nil {
					break
				}
				j, err := b.Encode(JSON)
				if err != nil {
					t.Error(err)
					return
				}
				frame, err := ParseFrame(j)
				if err != nil {
					t.Error(err)
					return
				}
				if err := frame.Apply(&tr); err != nil {
					t.Error(err)
					return
				}
				c = frame.Cursor
				if n%17 == i { // reload
					tr, c = transcript.Transcript{}, ""
				}
			}
			for tr.Earlier {
				before := tr.Messages[0].ID
				p, err := g.Page(t.Context(), before, 7)
				if err != nil || !p.Add(&tr, before, c) {
					t.Errorf("page before %s: error %v", before, err)
					return
				}
			}
			s := tr.Snapshot(0)
			for _, m := range s.Messages {
				final[i] += m.ID + " " + m.Visible() + fmt.Sprint(m.History()) + "\n"
			}
		})
	}
	wg.Wait()
	var want transcript.Transcript
	r, err := log.Read(t.Context(), "c", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range r.Events {
		if err := want.Apply(&e); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	for _, m := range want.Messages {
		fmt.Fprintf(&b, "%s %s%v\n", m.ID, m.Visible(), m.History())
	}
	for i, got := range final {
		if got != b.String() {
			t.Errorf("reader %d has\n%s\nthe log has\n%s", i, got, b.String())
		}
	}
}
