package feed

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// TestTruncateBehindTheWindow truncates to a message that the feed has evicted, and publishes more events while the log is read
// for the snapshot.
func TestTruncateBehindTheWindow(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	for i := range 20 {
		log.append(message(fmt.Sprintf("u%d", i), "x"))
	}
	_, f := open(t, log, Config{Window: transcript.Limits{Messages: 3}})
	defer f.Release()
	if n := len(f.fold.Messages); n > 6 {
		t.Fatalf("%d messages are in memory", n)
	}
	publish(t, log, f, event.Event{Type: event.ConversationTruncate, Message: "u4"})
	published := false
	log.onRead = func() {
		if !published {
			published = true
			publish(t, log, f, message("new", "y"))
		}
	}
	b := poll(t, f, NewCursor("e", 20), 0)
	var ids []string
	for _, m := range b.Snapshot.Messages {
		ids = append(ids, m.ID)
	}
	if got := strings.Join(ids, " "); got != "u3 u4 new" || b.Upto != 22 || !b.Snapshot.Earlier {
		t.Errorf("%s up to %d", got, b.Upto)
	}
	f.View(func(t_ *transcript.Transcript) {
		if t_.Message("u4") == nil {
			t.Error("the fold is still short")
		}
	})
}

func TestLoadKeepsTheWindowOnly(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	for i := range 1000 {
		log.append(message(fmt.Sprintf("u%d", i), strings.Repeat("x", 100)))
	}
	_, f := open(t, log, Config{chunkSize: 500, behindLimit: 1 << 20, pieceSize: 1 << 20})
	defer f.Release()
	if n := len(f.fold.Messages); n < 50 || n > 100 {
		t.Errorf("%d messages are in memory", n)
	}
	if n := len(poll(t, f, "", 0).Snapshot.Messages); n != 50 {
		t.Errorf("%d messages in a snapshot", n)
	}
	for i := range 5000 {
		publish(t, log, f, message(fmt.Sprintf("v%d", i), "x"))
	}
	if n := len(f.fold.Messages); n > 200 {
		t.Errorf("%d messages are in memory after publishing", n)
	}
	if n := len(f.tail.marks); n > defaultTailEvents*3/2 {
		t.Errorf("%d events in the tail", n)
	}
}

func TestPage(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	for i := range 20 {
		log.append(message(fmt.Sprintf("u%d", i), "x"))
	}
	_, f := open(t, log, Config{Window: transcript.Limits{Messages: 3}})
	defer f.Release()
	reads := log.reads
	for _, c := range []struct {
		before  string
		limit   int
		want    string
		earlier bool
		reads   bool
	}{
		{"", 2, "u18 u19", true, false},
		{"u19", 1, "u18", true, false},
		{"u18", 0, "u15 u16 u17", true, false},
		{"u5", 4, "u1 u2 u3 u4", true, true},
		{"u3", 4, "u0 u1 u2", false, true},
		{"u0", 4, "", false, true},
	} {
		p, err := f.Page(t.Context(), c.before, c.limit)
		if err != nil {
			t.Fatalf("before %s: %v", c.before, err)
		}
		var ids []string
		for _, m := range p.Messages {
			ids = append(ids, m.ID)
		}
		if got := strings.Join(ids, " "); got != c.want || p.Earlier != c.earlier || p.Seq != 20 || p.Epoch != "e" {
			t.Errorf("before %s: %s, earlier %v, as of %s.%d", c.before, got, p.Earlier, p.Epoch, p.Seq)
		}
		if c.reads != (log.reads > reads) {
			t.Errorf("before %s: %d reads of the log", c.before, log.reads-reads)
		}
		reads = log.reads
	}
	if _, err := f.Page(t.Context(), "nobody", 1); !errors.Is(err, ErrNoMessage) {
		t.Errorf("unknown message: %v", err)
	}
	p, err := f.Page(t.Context(), "u1", 9)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"conversation":"c","epoch":"e","seq":20,"first":"u0","transcript":{"seq":20,"messages":[{"id":"u0","role":"user","ended":true,"parts":[{"id":"p1","kind":"text","ended":true,"text":"x"}]}],"turns":[]}}`
	if j, err := p.AppendJSON(nil); err != nil || string(j) != want {
		t.Errorf("%s, error %v", j, err)
	}
}

func TestPageAfterTruncates(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	add := func(from, to int) {
		for i := from; i <= to; i++ {
			log.append(message(fmt.Sprintf("u%d", i), "x"))
		}
	}
	add(1, 30)
	log.append(event.Event{Type: event.ConversationTruncate, Message: "u10"}) // further back than a page keeps
	add(31, 40)
	log.append(event.Event{Type: event.ConversationTruncate, Message: "u35"}) // of later ones
	add(41, 50)
	_, f := open(t, log, Config{Window: transcript.Limits{Messages: 2}})
	defer f.Release()
	for _, compacted := range []bool{false, true} {
		if compacted {
			log.compact()
		}
		for before, want := range map[string]string{"u31": "u9 u10", "u9": "u7 u8", "u41": "u34 u35"} {
			p, err := f.Page(t.Context(), before, 2)
			if err != nil {
				t.Fatalf("before %s: %v", before, err)
			}
			if got := p.Messages[0].ID + " " + p.Messages[1].ID; got != want {
				t.Errorf("before %s: %s", before, got)
			}
		}
		for _, gone := range []string{"u11", "u30", "u36"} {
			if _, err := f.Page(t.Context(), gone, 2); !errors.Is(err, ErrNoMessage) {
				t.Errorf("before %s: %v", gone, err)
			}
		}
	}
}

func TestSnapshotOfTrimmedLog(t *testing.T) {
	log := &fakeLog{epoch: "e"}
	log.append(message("u", "a"), message("v", "b"))
	log.trim(2)
	_, f := open(t, log, Config{})
	defer f.Release()
	if b := poll(t, f, "", 0); b.Upto != 2 || b.Snapshot.Seq != 2 || b.Cursor != "e.2" {
		t.Errorf("%s", encoded(t, b, JSON))
	}
}
