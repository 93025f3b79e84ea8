package telegram

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	fake "github.com/leat-dev/leat/chattest/telegram"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
)

// TestStorm delivers turns to many chats at once while requests fail at random: penalties of 1 to 149 s, faults of the server,
// requests that are lost before or after they took effect, and people who delete messages. Every final answer arrives once,
// except those with an unknown outcome, which arrive at most once and are reported. Nothing else remains in a chat. Time is
// virtual.
func TestStorm(t *testing.T) {
	chats, turns := 20, 10
	if os.Getenv("LEAT_FULL") != "" {
		turns = 50
	}
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, stormSeed(t)))
		chaos := func(string, int64) *fake.Fault {
			switch n := random.IntN(100); {
			case n < 4:
				return &fake.Fault{Status: 429, RetryAfter: time.Duration(1+random.IntN(149)) * time.Second}
			case n < 8:
				return &fake.Fault{Status: 500, Description: "Internal Server Error"}
			case n < 10:
				return &fake.Fault{Before: true}
			case n < 12:
				return &fake.Fault{After: true}
			}
			return nil
		}
		c, server := newBot(fake.Options{Gap: time.Second, GroupGap: 3 * time.Second, Chaos: chaos})
		type result struct {
			chat int64
			mark string
			err  error
		}
		results := make(chan result, chats*turns)
		for i := range chats {
			chat := int64(i + 1)
			if i%2 == 0 {
				chat = -chat
			}
			who := fake.Writer{Chat: chat, ID: 7, Name: "Ann"}
			seed := rand.New(rand.NewPCG(uint64(i), 3))
			go func() {
				for n := range turns {
					said := server.Say(who, "hello")
					mark := fmt.Sprintf("turn %d of %d.", n, i)
					s := newStory()
					s.turn = fmt.Sprint("turn", i, "-", n)
					saved := &store{}
					metadata := saved.metadata(messageRef(chat, said))
					metadata.Turn = s.turn
					done := make(chan error, 1)
					go func() { done <- c.SendStream(t.Context(), place{chat: chat}.id(), metadata, s.ch) }()
					s.begin(t)
					for range seed.IntN(4) {
						s.tool(t, "bash", `{"command":"ls"}`)
						time.Sleep(time.Duration(seed.IntN(20000)) * time.Millisecond)
						s.toolEnd(t, "out", event.PartDone)
					}
					s.openText(t)
					for range seed.IntN(40) {
						s.write(t, "Words of an answer. ")
						time.Sleep(time.Duration(seed.IntN(3000)) * time.Millisecond)
						if visible := server.Visible(chat); seed.IntN(40) == 0 && len(visible) > 0 {
							if m := visible[len(visible)-1]; m.Silent { // a status message
								server.Remove(chat, m.ID)
							}
						}
					}
					s.write(t, mark)
					s.end(t, event.Completed)
					results <- result{chat, mark, <-done}
				}
			}()
		}
		unknown := 0
		for range chats * turns {
			r := <-results
			count := 0
			for _, m := range server.Visible(r.chat) {
				count += strings.Count(m.Text, r.mark)
				if m.Silent {
					t.Errorf("%s left %q", r.mark, m.Text)
				}
			}
			switch {
			case r.err == nil && count == 1:
			case errors.Is(r.err, channel.ErrUnknownOutcome) && count <= 1:
				unknown++
			default:
				t.Errorf("%s arrived %d times: %v", r.mark, count, r.err)
			}
		}
		if unknown > chats*turns/10 {
			t.Errorf("%d of %d with an unknown outcome", unknown, chats*turns)
		}
		t.Logf("%d turns, %d with an unknown outcome, %d requests", chats*turns, unknown, len(server.Requests()))
		check(t, server)
	})
}

// stormSeed returns the seed of the storm, which LEAT_SEED can set.
func stormSeed(t *testing.T) uint64 {
	text := os.Getenv("LEAT_SEED")
	if text == "" {
		return 2
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return seed
}
