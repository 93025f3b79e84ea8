package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/channeltest"
)

// The stories of this file are those of the conformance suite for chat platforms, channeltest. That suite counts requests and messages,
// of which a web chat has neither; here a client that follows docs/channels/web.md is looked at instead.

// committer is a channel whose conversation has the events that were delivered, as with a gateway.
type committer struct {
	*Channel
	log *conversation
}

// SendStream implements [channel.StreamChannel].
func (c committer) SendStream(ctx context.Context, chatID string, metadata channel.StreamMetadata, events <-chan channel.StreamEvent) error {
	ctx, cancel := context.WithCancel(ctx)
	steps := make(chan channel.StreamEvent)
	var task sync.WaitGroup
	task.Go(func() {
		defer close(steps)
		for {
			select {
			case e, ok := <-events:
				if !ok {
					return
				}
				c.log.commit(e)
				select {
				case steps <- e:
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	})
	err := c.Channel.SendStream(ctx, chatID, metadata, steps)
	cancel()
	task.Wait()
	return err
}

// commit adds the events of a step that the log doesn't have. A turn that is delivered again has the same events.
func (c *conversation) commit(e channel.StreamEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Snapshot != nil {
		c.log.Reset(e.Snapshot)
	}
	for i := range e.Events {
		if e.Events[i].Seq > c.seq {
			c.seq = e.Events[i].Seq
			if err := c.log.Apply(&e.Events[i]); err != nil {
				panic(err) // the events of a story fit
			}
		}
	}
}

// viewer is a client that reads frames until its connection ends.
type viewer struct {
	mu     sync.Mutex
	screen *screen
	// states are those of the tool calls, by name, and questions the texts of the open ones, by token.
	states        map[string]string
	questions     map[string]string
	questionCount int // questions in all
	finals        int // frames that end an answer
	frames        int
	onFrame       func(n int) // is called before the nth frame is shown, unless it is nil
}

// read shows the frames of a connection.
func (r *viewer) read(v *visitor) {
	for {
		_, b, err := v.Read(context.Background())
		if err != nil {
			return
		}
		var f frame
		if err := json.Unmarshal(b, &f); err != nil {
			panic(err)
		}
		r.mu.Lock()
		r.frames++
		if r.onFrame != nil {
			r.onFrame(r.frames)
		}
		r.show(f)
		r.mu.Unlock()
	}
}

// show shows a frame.
func (r *viewer) show(f frame) {
	isOpen := !r.screen.ended[f.Turn]
	r.screen.apply(f)
	switch {
	case f.Type == typeHistory:
		r.states, r.questions = map[string]string{}, map[string]string{}
	case !isOpen:
	case f.Type == typeTool:
		r.states[f.Name] = f.State
	case f.Type == typeQuestion:
		r.questionCount++
		r.questions[f.Question] = f.Text
	case f.Type == typeAnswered:
		delete(r.questions, f.Question)
	case f.Type == typeDone, f.Type == typeMessage && f.Turn != "":
		r.finals++
	}
}

// theater is a running channel and a visitor who watches it.
type theater struct {
	t       *testing.T
	site    *site
	log     *conversation
	viewer  *viewer
	session string
	state   channeltest.State
}

// newTheater opens a channel, to which a visitor connects.
func newTheater(t *testing.T) *theater {
	h := &theater{t: t, log: &conversation{}, session: newToken()}
	h.viewer = &viewer{screen: newScreen(t), states: map[string]string{}, questions: map[string]string{}}
	h.site = open(t, Options{}, h.log)
	h.connect()
	return h
}

// connect connects the visitor, who resumes after the last frame.
func (h *theater) connect() {
	h.t.Helper()
	query := "session=" + h.session
	if after := h.viewer.screen.after; after >= 0 {
		query += fmt.Sprint("&after=", after)
	}
	v, err := h.site.tryDial(query)
	if err != nil {
		h.t.Fatal(err)
	}
	go h.viewer.read(v) // ends with the connection
	synctest.Wait()
}

// begin starts a turn and its delivery.
func (h *theater) begin(ctx context.Context) (*channeltest.Story, <-chan error) {
	s := channeltest.NewStory(h.t, "turn")
	result := s.Deliver(ctx, committer{h.site.Channel, h.log}, chatOf(h.session), "", &h.state)
	s.Begin()
	return s, result
}

// look calls f with what the visitor sees when all frames have arrived.
func (h *theater) look(f func(r *viewer)) {
	synctest.Wait()
	h.viewer.mu.Lock()
	defer h.viewer.mu.Unlock()
	f(h.viewer)
}

// finish waits for the end of a delivery, and checks that the answer is shown once and has ended once.
func (h *theater) finish(result <-chan error, want string) {
	h.t.Helper()
	if err := <-result; err != nil {
		h.t.Fatal(err)
	}
	h.look(func(r *viewer) {
		h.t.Helper()
		if r.finals != 1 || len(r.screen.answers) != 1 || !r.screen.ended["turn"] || len(r.questions) > 0 {
			h.t.Errorf("%d finals, answers %q, open questions %v", r.finals, r.screen.answers, r.questions)
		}
		if got := r.screen.text["turn"]; got != want {
			h.t.Errorf("the visitor sees %q, want %q", got, want)
		}
	})
}

// TestStories plays turns of all kinds.
func TestStories(t *testing.T) {
	for name, play := range map[string]func(h *theater, s *channeltest.Story) (want string){
		"long answer": func(_ *theater, s *channeltest.Story) string {
			s.OpenText()
			var want strings.Builder
			for i := range 800 {
				sentence := fmt.Sprintf("Sentence %d of the answer. ", i)
				want.WriteString(sentence)
				s.Write(sentence)
			}
			s.End(event.Completed)
			return want.String()
		},
		"tools": func(h *theater, s *channeltest.Story) string {
			s.OpenText()
			s.Write("I look at the files first.")
			s.Tool("bash", `{"command":"ls"}`)
			h.look(func(r *viewer) {
				if r.states["bash"] != "running" {
					h.t.Errorf("tools %v", r.states)
				}
			})
			s.ToolEnd("not found", event.PartFailed)
			h.look(func(r *viewer) {
				if r.states["bash"] != "failed" {
					h.t.Errorf("tools %v", r.states)
				}
			})
			s.OpenText()
			s.Write("There are two.")
			s.End(event.Completed)
			return "I look at the files first.\n\nThere are two."
		},
		"question": func(h *theater, s *channeltest.Story) string {
			s.Ask("r1", "Remove x?")
			h.look(func(r *viewer) {
				if len(r.questions) != 1 {
					h.t.Errorf("questions %v", r.questions)
				}
			})
			s.Answer("r1", event.Deny)
			h.look(func(r *viewer) {
				if len(r.questions) != 0 || r.questionCount != 1 {
					h.t.Errorf("questions %v of %d", r.questions, r.questionCount)
				}
			})
			s.OpenText()
			s.Write("Then not.")
			s.End(event.Completed)
			return "Then not."
		},
		"failure": func(_ *theater, s *channeltest.Story) string {
			s.Tool("bash", `{"command":"ls"}`)
			s.OpenText()
			s.Write("Half an answer.")
			s.Fail("The model is overloaded.")
			return "Half an answer.\n\n⚠️ The model is overloaded."
		},
		"failure before a text": func(_ *theater, s *channeltest.Story) string {
			s.Fail("The model is overloaded.")
			return "⚠️ The model is overloaded."
		},
		"stop": func(_ *theater, s *channeltest.Story) string {
			s.Tool("bash", `{"command":"ls"}`)
			s.End(event.Cancelled)
			return ""
		},
		"stop with an open question": func(_ *theater, s *channeltest.Story) string {
			s.Ask("r1", "Remove x?")
			s.End(event.Cancelled)
			return ""
		},
		"stop within code": func(_ *theater, s *channeltest.Story) string {
			s.OpenText()
			s.Write("Text\n\n```go\nfunc")
			s.End(event.Cancelled)
			return "Text\n\n```go\nfunc\n```\n\n⏹ Stopped before the end of the answer."
		},
		"retracted": func(_ *theater, s *channeltest.Story) string {
			s.OpenText()
			for range 100 {
				s.Write(strings.Repeat("Words of a first try. ", 10))
			}
			s.Send(event.Event{Type: event.PartReplace, Message: "answer", Part: "p1", Field: event.Text, Text: "The second try."})
			s.End(event.Completed)
			return "The second try."
		},
		"removed turn": func(_ *theater, s *channeltest.Story) string {
			s.Tool("bash", `{"command":"ls"}`)
			s.OpenText()
			s.Write("An answer that is taken back.")
			s.Reset()
			return ""
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newTheater(t)
				s, result := h.begin(t.Context())
				h.finish(result, play(h, s))
			})
		})
	}
}

// TestKilledAtEachFrame ends the process at each frame of a turn, which the visitor has got or has not. The next process continues the
// turn: the visitor, who resumes, sees the answer once and whole, and it ends once.
func TestKilledAtEachFrame(t *testing.T) {
	want := "I look first.\n\n" + strings.Repeat("A sentence of the answer. ", 8)
	play := func(s *channeltest.Story) {
		for _, step := range []func(){
			s.OpenText,
			func() { s.Write("I look first.") },
			func() { s.Tool("bash", `{"command":"ls"}`) },
			func() { s.ToolEnd("x", event.PartDone) },
			func() { s.Ask("r1", "Go on?") },
			func() { s.Answer("r1", event.Approve) },
			s.OpenText,
		} {
			step()
			synctest.Wait()
		}
		for range 8 {
			s.Write("A sentence of the answer. ")
			synctest.Wait()
		}
		s.End(event.Completed)
	}
	n := 1
	for isKilled := true; isKilled; n++ {
		for _, isReceived := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				h := newTheater(t)
				ctx, kill := context.WithCancel(t.Context())
				defer kill()
				h.look(func(r *viewer) {
					r.frames = 0
					r.onFrame = func(frames int) {
						if frames == n {
							kill()
						}
					}
				})
				s, result := h.begin(ctx)
				synctest.Wait()
				play(s)
				err := <-result
				if isKilled = err != nil; !isKilled {
					return // with the last frame the delivery has ended
				}
				if !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				synctest.Wait()
				h.site.stop()
				time.Sleep(time.Second) // a process takes time to start, by which numbers of frames differ
				if !isReceived {
					h.viewer.screen = newScreen(t) // the page was loaded again
				}
				h.viewer.onFrame = nil
				h.site = open(t, Options{}, h.log)
				h.connect()
				s, result = h.begin(t.Context())
				play(s)
				if err := <-result; err != nil {
					t.Fatal(err)
				}
				h.look(func(r *viewer) {
					if r.screen.text["turn"] != want || len(r.screen.answers) != 1 || !r.screen.ended["turn"] || r.finals > 1 || len(r.questions) > 0 {
						t.Errorf("killed at frame %d: %d finals, answers %q, questions %v, text %q", n, r.finals, r.screen.answers, r.questions, r.screen.text["turn"])
					}
				})
			})
		}
	}
	if n < 14 {
		t.Errorf("killed at %d frames only", n)
	}
}
