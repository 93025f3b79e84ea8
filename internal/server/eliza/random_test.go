package eliza

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
)

// babble is an agent that emits random parts of all kinds at random intervals.
type babble struct{ rng *rand.Rand }

func (a *babble) Run(_ context.Context, _ agent.Input, out *agent.Emitter) error {
	word := func() string {
		return []string{"ha", "ha", "lo", " ", "\n\n", "🔍 Looking", "the ", "naïve", "```js\n", "…"}[a.rng.IntN(10)]
	}
	for range a.rng.IntN(40) {
		var err error
		switch a.rng.IntN(8) {
		case 0:
			err = out.Status(word()+word(), "")
		case 1:
			err = out.Status(word(), dialect.Append)
		case 2:
			err = out.Reasoning(word())
		case 3:
			var tool *agent.Tool
			if tool, err = out.Tool("search", ""); err == nil {
				err = tool.Done()
			}
		default:
			err = out.Text(word())
		}
		if err != nil {
			return err
		}
		if a.rng.IntN(3) == 0 {
			time.Sleep(time.Duration(a.rng.IntN(1000)) * time.Millisecond)
		}
	}
	return nil
}

// For any output of an agent and any interruptions of clients, every client ends with the same text as the
// transcript, and so does the list.
func TestRandomTurns(t *testing.T) {
	seeds := uint64(200)
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			a := &babble{rand.New(rand.NewPCG(seed, 1))}
			bubble(t, a, func(h *harness) {
				rng := rand.New(rand.NewPCG(seed, 2))
				c := h.create()
				live := h.stream("POST", at(c, "/messages/stream"), `{"text":"babble"}`)
				for live.seen().beats == 0 {
					time.Sleep(time.Millisecond)
				}
				path := at(c, "/messages/stream")
				query := []string{"", "?streamProtocol=delta-v2"}[rng.IntN(2)]
				// This client is interrupted again and again. It keeps its text and resumes with its last id.
				var shown, last string
				var end *doneFrame
				for end == nil {
					w := &wire{}
					w.chat.text = shown
					var headers []string
					if last != "" {
						headers = []string{"Last-Event-ID", last}
					}
					h.open(w, "GET", path+query, "", headers...)
					select {
					case <-time.After(time.Duration(rng.IntN(1500)) * time.Millisecond):
						w.cancel()
					case <-w.over:
					}
					s := w.wait()
					if w.status == 404 && last == "" {
						break // the stream ended before the client had an id
					}
					if shown, end = s.text, s.done; len(s.ids) > 0 {
						last = s.ids[len(s.ids)-1]
					}
				}
				s := live.wait()
				synctest.Wait()
				want, history := h.visible(c, s.done.Turn)
				for name, got := range map[string]string{"done": s.done.FullText, "live": s.text} {
					if got != want {
						t.Errorf("%s\n got %q\nwant %q", name, got, want)
					}
				}
				if end != nil && (end.FullText != want || shown != want) {
					t.Errorf("a client that was cut shows %q, got %q, want %q", shown, end.FullText, want)
				}
				if d := cmp.Diff(history, s.done.ActionCallbackHistory); d != "" {
					t.Errorf("history (-fold +done)\n%s", d)
				}
				before := h.messages(c)
				h.stop()
				h.start()
				if d := cmp.Diff(before, h.messages(c), cmp.AllowUnexported(message{})); d != "" {
					t.Errorf("a restart changed the list (-before +after)\n%s", d)
				}
			})
		})
	}
}
