package feed

import (
	"context"
	"testing"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// busyLog goes on while it is being read: what comes then is published before the reader has the stretch in hand.
type busyLog struct {
	*fakeLog
	afterRead func()
}

func (l *busyLog) Read(ctx context.Context, conversation string, after int64, limit int) (Stretch, error) {
	s, err := l.fakeLog.Read(ctx, conversation, after, limit)
	if l.afterRead != nil {
		fn := l.afterRead
		l.afterRead = nil
		fn()
	}
	return s, err
}

// A batch that was read from the log ends where the log ended when it was read, not where the feed is by now.
func TestPublishedWhileTheLogIsRead(t *testing.T) {
	l := &busyLog{fakeLog: &fakeLog{epoch: "e"}}
	r := NewRegistry(l, Config{TailEvents: 4})
	f, err := r.Acquire(t.Context(), "c")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Release()
	length := int64(0)
	say := func() {
		e := event.Event{Type: event.PartAppend, Turn: "t", Message: "m", Part: "p", Offset: length, Text: "word "}
		length += int64(len(e.Text))
		if err := f.Publish(l.append(e)); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range []event.Event{
		{Type: event.TurnStart, Turn: "t"},
		{Type: event.MessageStart, Turn: "t", Message: "m", Body: &event.Body{Role: event.Assistant}},
		{Type: event.PartStart, Turn: "t", Message: "m", Part: "p", Body: &event.Body{Kind: event.KindText}},
	} {
		if err := f.Publish(l.append(e)); err != nil {
			t.Fatal(err)
		}
	}
	var reader transcript.Transcript
	cursor := NewCursor("e", 0)
	for range 20 {
		say()
	}
	l.afterRead = func() {
		for range 20 {
			say()
		}
	}
	for {
		b, err := f.Poll(t.Context(), cursor, 0)
		if err != nil {
			t.Fatal(err)
		}
		if b == nil {
			break
		}
		if err := b.Apply(&reader); err != nil {
			t.Fatalf("batch up to %s: %v", b.Cursor, err)
		}
		cursor = b.Cursor
	}
	if got := reader.Message("m").Parts[0].Len(event.Text); int64(got) != length || l.afterRead != nil {
		t.Errorf("the reader has %d bytes of %d", got, length)
	}
}
