package feed

import (
	"context"
	"testing"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// busyLog grows while it is read: afterRead publishes events before the reader gets the result.
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

// A batch from the log ends at the head as of the read, not at the feed's head by now.
func TestPublishDuringRead(t *testing.T) {
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

// A log may be compacted and trimmed between the pieces in which a page or a fold is read.
func TestLogChangesDuringRead(t *testing.T) {
	for name, move := range map[string]func(l *busyLog, f *Feed) error{
		"compacted": func(l *busyLog, f *Feed) error {
			err := f.Publish(l.append(event.Event{Type: event.MessageUpdate, Message: "u3", Body: &event.Body{MessageState: event.MessageJoined}}))
			l.compact()
			return err
		},
		"trimmed": func(l *busyLog, _ *Feed) error {
			l.trim(2)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := &busyLog{fakeLog: &fakeLog{epoch: "e"}}
			for _, id := range []string{"u1", "u2", "u3", "u4", "u5", "u6", "u7", "u8"} {
				l.append(message(id, "x"))
			}
			r := NewRegistry(l, Config{Window: transcript.Limits{Messages: 1}, chunkSize: 1, behindLimit: 1 << 20, pieceSize: 1 << 20})
			f, err := r.Acquire(t.Context(), "c")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Release()
			l.afterRead = func() {
				if err := move(l, f); err != nil {
					t.Error(err)
				}
			}
			p, err := f.Page(t.Context(), "u4", 2)
			if err != nil || l.afterRead != nil {
				t.Fatalf("page: %v", err)
			}
			want := map[string]string{"compacted": "u2 u3joined ", "trimmed": "u3 "}[name]
			got := ""
			for _, m := range p.Messages {
				got += m.ID + string(m.State) + " "
			}
			if got != want || p.Seq != f.Head() {
				t.Errorf("page as of %d: %s, want %s", p.Seq, got, want)
			}
		})
	}
}
