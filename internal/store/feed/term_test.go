package feed

import (
	"slices"
	"testing"
)

// loseTail removes the events above a seq, as a power failure may, and reopens the log in a new term.
func (l *fakeLog) loseTail(head int64, term string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.live = slices.Clone(l.live[:head])
	l.head = head
	l.terms = slices.DeleteFunc(slices.Clone(l.terms), func(t Term) bool { return t.FirstSeq > head })
	l.terms = append(l.terms, Term{FirstSeq: head + 1, ID: term})
}

// A log that lost its newest events uses their seqs again. Only readers of the lost events get a snapshot.
func TestLostTail(t *testing.T) {
	log := &fakeLog{epoch: "e", terms: []Term{{FirstSeq: 1, ID: "t1"}}}
	log.append(message("u1", "one"), message("u2", "two"))
	_, f := open(t, log, Config{})
	survivor := f.Cursor()
	publish(t, log, f, message("u3", "three"), message("u4", "lost"), message("u5", "lost"))
	lost, edge := f.Cursor(), f.CursorAt(4)
	f.Release()

	log.loseTail(3, "t2")
	_, f = open(t, log, Config{Idle: -1})
	if b := poll(t, f, lost, 0); b == nil || !b.Reset {
		t.Errorf("above the head: %+v", b)
	}
	publish(t, log, f, message("u6", "new"), message("u7", "new"), message("u8", "new"))
	for name, c := range map[string]Cursor{"at the lost head": lost, "at the first lost seq": edge, "without a term": NewCursor("e", 5), "of an unknown term": newCursor("e", "t9", 2)} {
		if b := poll(t, f, c, 0); b == nil || !b.Reset || len(b.Snapshot.Messages) != 6 {
			t.Errorf("%s: %+v, want a snapshot of 6 messages", name, b)
		}
		if f.Knows(c) {
			t.Errorf("%s: the feed knows %s", name, c)
		}
	}
	b := poll(t, f, survivor, 0)
	if b == nil || b.Reset || len(b.Events) != 4 || !f.Knows(survivor) {
		t.Errorf("a reader of the remaining events gets %+v, want the 4 events after seq 2", b)
	}
	if want := newCursor("e", "t2", 6); b.Cursor != want || f.Cursor() != want {
		t.Errorf("cursors %s and %s, want %s", b.Cursor, f.Cursor(), want)
	}
	f.Release()
}

// A feed that was idle while its log lost events is loaded again, even if the head has reached the same seq again.
func TestLostTailIdle(t *testing.T) {
	log := &fakeLog{epoch: "e", terms: []Term{{FirstSeq: 1, ID: "t1"}}}
	log.append(message("u1", "one"), message("u2", "lost"))
	r, f := open(t, log, Config{})
	lost := f.Cursor()
	f.Release()
	log.loseTail(1, "t2")
	log.append(message("u3", "new"))
	f, err := r.Acquire(t.Context(), "c")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Release()
	if b := poll(t, f, lost, 0); b == nil || !b.Reset || b.Snapshot.Messages[1].ID != "u3" {
		t.Errorf("got %+v, want a snapshot with u3", b)
	}
}
