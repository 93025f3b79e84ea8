package web

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/voice"
)

// speechFunc is a session that only gets texts.
type speechFunc func(turn, text string, isEnded bool)

func (f speechFunc) Update(turn, text string, isEnded bool) { f(turn, text, isEnded) }
func (speechFunc) Post(voice.Frame)                         {}

// A turn goes on in a session that was too slow for the frames of its room. It isn't ended and begun again.
func TestSlowSession(t *testing.T) {
	r := newRoom("chat")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.begin("t1", "eliza")
	r.grow("a")
	want := "a"
	ended := map[string]string{}
	err := spokenChat{&socket{c: &Channel{}, room: r}}.Follow(ctx, speechFunc(func(turn, text string, isEnded bool) {
		if _, isOver := ended[turn]; isOver {
			t.Errorf("turn %s is updated after its end", turn)
		}
		if isEnded {
			ended[turn] = text
		}
		switch {
		case turn == "t1" && text == "a": // more than the room keeps, while this is spoken
			for range 3 {
				delta := strings.Repeat("x", maxRoom/2+1)
				want += delta
				r.grow(delta)
			}
		case turn == "t1" && !isEnded && text == want: // the turn ends, and so much follows that its end is dropped too
			r.end(frame{Type: typeDone, Turn: "t1"})
			r.begin("t2", "eliza")
			for range 3 {
				r.grow(strings.Repeat("y", maxRoom/2+1))
			}
		case turn == "t2" && isEnded:
			cancel()
		case turn == "t2" && text != "":
			r.end(frame{Type: typeDone, Turn: "t2"})
		}
	}), "")
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if ended["t1"] != want || len(ended["t2"]) == 0 {
		t.Errorf("the turns ended with %d and %d bytes", len(ended["t1"]), len(ended["t2"]))
	}
}
