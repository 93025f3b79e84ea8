package feed_test

import (
	"context"
	"fmt"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/transcript"
)

// oneLog is the log of a conversation without events.
type oneLog struct{}

func (oneLog) Read(context.Context, string, int64, int) (feed.Stretch, error) {
	return feed.Stretch{Epoch: "e1"}, nil
}

// A reader consists of a cursor and a transcript. It polls when its connection can take more.
func Example() {
	ctx := context.Background()
	registry := feed.NewRegistry(oneLog{}, feed.Config{})
	f, err := registry.Acquire(ctx, "conversation")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Release()

	var cursor feed.Cursor // a new reader has none
	var t transcript.Transcript
	read := func() {
		b, err := f.Next(ctx, cursor, 64<<10)
		if err != nil {
			fmt.Println(err)
			return
		}
		if err := b.Apply(&t); err != nil {
			cursor = "" // it takes a snapshot next
			return
		}
		cursor = b.Cursor
		frame, err := b.Encode(feed.NDJSON)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s", frame)
	}
	read()
	// The conversation's writer has committed these events.
	if err := f.Publish([]event.Event{
		{Seq: 1, Type: event.MessageStart, Message: "m", Body: &event.Body{Role: event.Assistant}},
		{Seq: 2, Type: event.PartStart, Message: "m", Part: "p", Body: &event.Body{Kind: event.KindText}},
		{Seq: 3, Type: event.PartAppend, Message: "m", Part: "p", Text: "Hello"},
		{Seq: 4, Type: event.PartAppend, Message: "m", Part: "p", Offset: 5, Text: ", world"},
	}); err != nil {
		fmt.Println(err)
		return
	}
	read()
	fmt.Println(t.Message("m").Visible())
	// Output:
	// {"type":"snapshot","conversation":"conversation","cursor":"e1.0","epoch":"e1","reset":true,"transcript":{"messages":[],"turns":[]}}
	// {"type":"batch","conversation":"conversation","cursor":"e1.4","seq":4,"events":[{"seq":1,"type":"message.start","message":"m","role":"assistant"},{"seq":2,"type":"part.start","message":"m","part":"p","kind":"text"},{"seq":4,"first":3,"type":"part.append","message":"m","part":"p","offset":0,"text":"Hello, world"}]}
	// Hello, world
}
