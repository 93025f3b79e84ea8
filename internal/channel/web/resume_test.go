package web

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
)

// screen is what a client shows that follows the rules of docs/channels/web.md.
type screen struct {
	t       *testing.T
	after   int64
	answers []string // ids of turns, in order
	text    map[string]string
	ended   map[string]bool
	own     []string // messages of the visitor
	shown   map[string]bool
}

func newScreen(t *testing.T) *screen {
	return &screen{t: t, after: -1, text: map[string]string{}, ended: map[string]bool{}, shown: map[string]bool{}}
}

func (v *screen) answer(turn string) {
	if _, ok := v.text[turn]; !ok {
		v.answers = append(v.answers, turn)
		v.text[turn] = ""
	}
}

// user shows a message of the visitor, unless it is shown already.
func (v *screen) user(id, content string) {
	if !v.shown[id] {
		v.shown[id] = true
		v.own = append(v.own, content)
	}
}

func (v *screen) apply(f frame) {
	if f.ID != 0 {
		if f.ID <= v.after {
			v.t.Errorf("frame %d (%s) after %d", f.ID, f.Type, v.after)
		}
		v.after = f.ID
	}
	if f.Turn != "" && v.ended[f.Turn] {
		return
	}
	switch f.Type {
	case typeHistory:
		*v = *newScreen(v.t)
		v.after = f.ID
		for _, m := range f.Messages {
			if m.Role == roleUser {
				v.user(m.Message, m.Content)
				continue
			}
			v.answer(m.Turn)
			v.text[m.Turn], v.ended[m.Turn] = m.Content, true
		}
	case typeTyping:
		v.answer(f.Turn)
	case typeStream:
		v.answer(f.Turn)
		v.text[f.Turn] += f.Delta
	case typeReplace:
		v.answer(f.Turn)
		v.text[f.Turn] = f.Text
	case typeDone:
		v.ended[f.Turn] = true
	case typeMessage:
		if f.Turn != "" {
			v.ended[f.Turn] = true
			v.text[f.Turn] = strings.TrimSpace(v.text[f.Turn] + "\n\n" + f.Content)
		}
	case typeUser:
		v.user(f.Message, f.Content)
	}
}

// TestResume cuts the connection of a reader at random frames: before they arrive, or after. Sometimes the room is lost too, as by a
// restart, or has dropped its oldest frames. At the end the reader has every text once and whole.
func TestResume(t *testing.T) {
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) { resumeRandomly(t, rand.New(rand.NewPCG(seed, 1))) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func resumeRandomly(t *testing.T, random *rand.Rand) {
	s := open(t, Options{}, nil)
	log := &conversation{}
	s.ReadFrom(log)
	chat := chatOf(newToken())
	view := newScreen(t)
	ctx, cancel := context.WithCancel(t.Context())
	read := make(chan struct{})
	cuts := 5 + random.IntN(30)
	var mu sync.Mutex
	cut := context.CancelFunc(nil) // of the reader, at a restart
	restart := func() {
		mu.Lock()
		defer mu.Unlock()
		if cut != nil {
			cut()
		}
		s.rooms.mu.Lock()
		defer s.rooms.mu.Unlock()
		delete(s.rooms.byChat, chat)
	}
	go func(random *rand.Rand) {
		defer close(read)
		for ctx.Err() == nil {
			mu.Lock()
			r := s.rooms.enter(chat)
			var reading context.Context
			reading, cut = context.WithCancel(ctx)
			mu.Unlock()
			left := random.IntN(20) // frames until the cut
			rd := &reader{room: r, at: view.after, history: func(ctx context.Context) (*history, error) { return s.historyOf(ctx, r) }}
			rd.write = func(_ context.Context, f frame) error {
				if left == 0 && cuts > 0 {
					cuts--
					if random.IntN(2) == 0 {
						view.apply(f) // it arrives, but the server doesn't know
					}
					return errDisconnected
				}
				left--
				if random.IntN(3) == 0 {
					time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
				}
				view.apply(f)
				return nil
			}
			_ = rd.run(reading) // it ends with the cut or with ctx
			s.rooms.leave(r)
			time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond)
		}
	}(rand.New(rand.NewPCG(random.Uint64(), 2)))

	var turns, own []string
	want := map[string]string{}
	for n := range 1 + random.IntN(6) {
		text := fmt.Sprint("question ", n)
		own = append(own, text)
		id := fmt.Sprint("u", n)
		// The frame comes before the message is in the conversation, as it does in the pipeline, or after it.
		store := func() {
			log.addMessage(t, id, text)
		}
		r := s.rooms.enter(chat)
		isEarly := random.IntN(2) == 0
		if isEarly {
			store()
		}
		r.confirm(frame{Type: typeUser, Content: text, Message: id})
		s.rooms.leave(r)
		time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
		if !isEarly {
			store()
		}
		turn := fmt.Sprint("t", n)
		turns = append(turns, turn)
		want[turn] = tellRandomly(t, s, random, chat, turn, log, restart)
	}
	time.Sleep(time.Hour)
	cancel()
	<-read
	if got := fmt.Sprint(view.answers); got != fmt.Sprint(turns) {
		t.Errorf("turns %s, want %s", got, turns)
	}
	if fmt.Sprint(view.own) != fmt.Sprint(own) {
		t.Errorf("messages %q, want %q", view.own, own)
	}
	for turn, text := range want {
		if view.text[turn] != text {
			t.Errorf("turn %s: %q, want %q", turn, view.text[turn], text)
		}
	}
}

// tellRandomly delivers a turn with random texts and returns its final text.
func tellRandomly(t *testing.T, s *site, random *rand.Rand, chat, turn string, log *conversation, restart func()) string {
	y := s.tell(t.Context(), chat, turn, log)
	for n := range random.IntN(60) {
		switch random.IntN(12) {
		case 0:
			y.open(event.KindText)
		case 1:
			if y.parts > 0 {
				y.replace(fmt.Sprint("replaced ", n, " "))
			}
		case 2: // the delivery is repeated: after a restart the room is new
			close(y.ch)
			<-y.done
			if random.IntN(2) == 0 {
				restart()
			}
			y = repeatTold(s, y, chat)
		case 3:
			y.write(strings.Repeat("long ", random.IntN(12_000)))
		case 4: // more than a reader gets unmerged
			var pieces []string
			for i := range 2*lag + random.IntN(100) {
				pieces = append(pieces, fmt.Sprint(n, ".", i, " "))
			}
			y.write(pieces...)
		default:
			y.write(fmt.Sprint(n, " "), "ä€😀 ")
		}
		if random.IntN(2) == 0 {
			time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond)
		}
	}
	if random.IntN(4) == 0 {
		y.end(event.Failed, "overloaded")
	} else {
		y.end(event.Completed, "")
	}
	stream := channel.NewStream(turn)
	log.mu.Lock()
	defer log.mu.Unlock()
	if err := stream.Apply(channel.StreamEvent{Snapshot: log.log.Snapshot(0)}); err != nil {
		t.Fatal(err)
	}
	return stream.Final()
}

// repeatTold repeats the delivery of a turn. It begins with a snapshot of the story so far.
func repeatTold(s *site, y *story, chat string) *story {
	again := &story{t: y.t, turn: y.turn, log: y.log, ch: make(chan channel.StreamEvent), parts: y.parts, text: y.text, done: make(chan error, 1)}
	go func() {
		again.done <- s.SendStream(s.t.Context(), chat, channel.StreamMetadata{Turn: y.turn, Agent: "a"}, again.ch)
	}()
	y.log.mu.Lock()
	snapshot := y.log.log.Snapshot(0)
	y.log.mu.Unlock()
	again.ch <- channel.StreamEvent{Snapshot: snapshot}
	return again
}

// A reader that doesn't lag gets a frame for each growth, and one that lags gets them merged, in frames that most clients accept.
func TestMerge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &conversation{}
		s := open(t, Options{}, log)
		fast, slow := s.dial("session="), s.dial("session=")
		chats := []string{chatOf(fast.session), chatOf(slow.session)}
		var stories []*story
		stories = append(stories, s.tell(t.Context(), chats[0], "t1", &conversation{}), s.tell(t.Context(), chats[1], "t1", log))
		fast.until(typeTyping)
		const n = 5000
		word := "0123456 "
		for range n {
			for _, y := range stories {
				y.write(word)
			}
			if f := fast.until(typeStream); len(f) != 1 || f[0].Delta != word {
				t.Fatalf("frames %+v", f)
			}
		}
		for _, y := range stories {
			y.end(event.Completed, "")
		}
		view, frames := newScreen(t), 0
		for !view.ended["t1"] {
			var f frame
			slow.next(&f)
			view.apply(f)
			frames++
			if len(f.Delta) > maxMerged {
				t.Errorf("a frame of %d bytes", len(f.Delta))
			}
		}
		if text := view.text["t1"]; text != strings.Repeat(word, n) {
			t.Errorf("%d bytes, want %d", len(text), n*len(word))
		}
		if frames > 100 {
			t.Errorf("%d frames for a reader that lags", frames)
		}
		r := s.rooms.enter(chats[1])
		defer s.rooms.leave(r)
		if r.bytes > maxRoom {
			t.Errorf("the room has %d frames with %d bytes", len(r.entries), r.bytes)
		}
	})
}

// A connection that takes nothing is closed, and delays neither the delivery nor another reader of the chat.
func TestStalledReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{}, nil)
		stalled := s.dial("session=")
		chat := chatOf(stalled.session)
		other := s.dial("session=" + stalled.session)
		began := time.Now()
		y := s.tell(t.Context(), chat, "t1", &conversation{})
		for range 1000 {
			y.write("word ")
		}
		y.end(event.Completed, "")
		if took := time.Since(began); took > 0 {
			t.Errorf("the delivery took %v", took)
		}
		other.until(typeDone)
		time.Sleep(writeLimit + time.Second)
		for {
			if _, _, err := stalled.Read(t.Context()); err != nil {
				break
			}
		}
		back := s.dial("session=" + stalled.session + "&after=1")
		back.until(typeDone)
	})
}

// Frames of the seed's clients can't be replaced by a history, so a client that is too far behind is disconnected.
func TestPlainReaderTooSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{}, nil)
		v := s.dial("")
		y := s.tell(t.Context(), chatOf(v.session), "t1", &conversation{})
		for range 100 {
			y.write(strings.Repeat("x", maxRoom/50))
		}
		for {
			_, _, err := v.Read(t.Context())
			if err != nil {
				if !strings.Contains(err.Error(), "too slow") {
					t.Errorf("error %v", err)
				}
				break
			}
		}
		y.end(event.Completed, "")
	})
}

func TestRoomsAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &rooms{byChat: map[string]*room{}}
		used := s.enter("used")
		defer s.leave(used)
		for i := range 2 * maxRooms {
			s.leave(s.enter(fmt.Sprint(i)))
			time.Sleep(time.Second / 10)
		}
		if n := len(s.byChat); n > maxRooms+1 {
			t.Errorf("%d rooms", n)
		}
		if s.enter("used") != used {
			t.Error("a room in use was dropped")
		}
		old := s.enter("old")
		s.leave(old)
		time.Sleep(roomLife)
		s.leave(s.enter("another"))
		if len(s.byChat) != 2 {
			t.Errorf("%d rooms", len(s.byChat))
		}
		if o := s.enter("old"); o == old || o.last <= old.last {
			t.Error("numbers of a room were used again")
		}
	})
}

// An answer that is in the history is not sent again by frames, also if it is delivered after the history was made.
func TestDeliveryAfterHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &conversation{}
		s := open(t, Options{}, log)
		token := newToken()
		for i := range 2 { // the turn has ended before its delivery, or in its course
			turn := fmt.Sprint("t", i)
			y := s.tell(t.Context(), chatOf(token), turn, log)
			y.write("text ")
			end := event.Event{Type: event.TurnEnd, Turn: turn, Body: &event.Body{Outcome: event.Completed}}
			log.apply(t, &end)
			if i == 1 {
				s.rooms.byChat = map[string]*room{} // the delivery is repeated in a new room
				close(y.ch)
				<-y.done
				y = nil
			}
			v := s.dial("session=" + token)
			var f frame
			if v.next(&f); f.Type != typeHistory || len(f.Messages) != i+1 || f.Messages[i].Content != "text " || f.ID == 0 {
				t.Fatalf("frame %+v", f)
			}
			if y == nil {
				y = repeatTold(s, &story{t: t, turn: turn, log: log}, chatOf(token))
			} else {
				y.pass(end)
			}
			close(y.ch)
			if err := <-y.done; err != nil {
				t.Error(err)
			}
			if err := s.Send(t.Context(), channel.OutboundMessage{ChatID: chatOf(token), Content: "next"}); err != nil {
				t.Error(err)
			}
			if v.next(&f); f.Type != typeMessage || f.Content != "next" {
				t.Errorf("frame %+v", f)
			}
		}
	})
}

// A number from the future, as after the clock was set back, leads to a history.
func TestUnknownNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Options{}, &conversation{})
		v := s.dial("session=")
		for _, after := range []string{"0", "-1", "x", "", "9007199254740991"} {
			back := s.dial("session=" + v.session + "&after=" + after)
			var f frame
			if back.next(&f); f.Type != typeHistory {
				t.Errorf("after %q: frame %+v", after, f)
			}
			_ = back.CloseNow()
		}
	})
}
