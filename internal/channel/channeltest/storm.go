package channeltest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
)

// storm delivers turns to all chats at once while requests fail at random: penalties of 1 to 149 s, faults of the server, requests
// that are lost before or after they took effect, and people who delete messages. Every answer arrives once, except those with an
// unknown outcome, which arrive at most once and are reported. Nothing else remains in a chat. The seed is fixed, so a failure can be
// repeated.
func storm(t *testing.T, p Platform) {
	// The long storm is for nightly runs and changes of the engine.
	turns := 30
	if os.Getenv("LEAT_FULL") != "" {
		turns = 1000 / len(p.Chats)
	}
	synctest.Test(t, func(t *testing.T) {
		server := p.New()
		ch := server.Open()
		random := rand.New(rand.NewPCG(1, stormSeed(t)))
		var mu sync.Mutex
		server.SetChaos(func() Fault {
			mu.Lock()
			defer mu.Unlock()
			switch n := random.IntN(100); {
			case n < 4:
				return Fault{Penalized, time.Duration(1+random.IntN(149)) * time.Second}
			case n < 8:
				return Fault{Kind: Broken}
			case n < 10:
				return Fault{Kind: LostBefore}
			case n < 12:
				return Fault{Kind: LostAfter}
			}
			return Fault{}
		})
		unknown, played := 0, 0
		var wg sync.WaitGroup
		for i, chat := range p.Chats {
			wg.Go(func() {
				random := rand.New(rand.NewPCG(uint64(i), 3))
				for n := range turns {
					mark := fmt.Sprintf("turn %d of %d.", n, i)
					err := stormTurn(t, server, ch, chat, mark, random)
					text := strings.Join(server.Visible(chat), "|")
					count := strings.Count(text, mark)
					mu.Lock()
					played++
					switch {
					case err == nil && count == 1:
					case !p.Idempotent && errors.Is(err, channel.ErrUnknownOutcome) && count <= 1:
						unknown++
					default:
						t.Errorf("%s arrived %d times: %v", mark, count, err)
					}
					mu.Unlock()
					if strings.Contains(text, "Working…") || strings.Contains(text, "▍") {
						t.Errorf("%s left something behind: %q", mark, text[max(0, len(text)-1000):])
						return
					}
				}
			})
		}
		wg.Wait()
		if unknown > played/4 { // 4 % of the requests get no answer; more would be a message of the running turn that counts as one of the answer
			t.Errorf("%d of %d with an unknown outcome", unknown, played)
		}
		end(t, server)
		t.Logf("%d turns, %d with an unknown outcome, %d requests", played, unknown, server.Requests())
	})
}

// stormTurn plays one turn. Its text ends with a mark that no other turn has, by which the answer is counted. People delete only
// messages of the running turn, because a deleted answer would look like a lost one.
func stormTurn(t *testing.T, server Server, ch channel.StreamChannel, chat, mark string, random *rand.Rand) error {
	s := NewStory(t, mark)
	result := s.Deliver(t.Context(), ch, chat, server.Say(chat), &State{})
	s.Begin()
	for range random.IntN(4) {
		s.Tool("bash", `{"command":"ls"}`)
		time.Sleep(time.Duration(random.IntN(20000)) * time.Millisecond)
		s.ToolEnd("out", event.PartDone)
	}
	s.OpenText()
	for range random.IntN(40) {
		s.Write("Words of an answer. ")
		time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
		if texts := server.Visible(chat); random.IntN(40) == 0 && len(texts) > 0 {
			last := len(texts) - 1
			if text := texts[last]; strings.Contains(text, "Working…") || strings.Contains(text, "▍") { // not an answer of before
				server.Remove(chat, last)
			}
		}
	}
	s.Write(mark)
	s.End(event.Completed)
	return <-result
}

// stormSeed returns the seed of the storm's faults, which LEAT_SEED can set. A failure in a nightly run is repeated with the seed of
// that run.
func stormSeed(t *testing.T) uint64 {
	text := os.Getenv("LEAT_SEED")
	if text == "" {
		return 2
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
