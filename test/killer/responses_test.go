//go:build unix

package killer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/agent/llm/llmtest"
	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal/sqlite"
	"github.com/leat-dev/leat/transcript"
)

// TestKillerResponses kills the program in the middle of a background response. The restarted program
// follows the response, and the answer is complete without a repeated byte, after a single request.
func TestKillerResponses(t *testing.T) {
	s := llmtest.New(t, "responses")
	var words []string
	for i := range 60 {
		words = append(words, fmt.Sprintf("wörd-%02d ", i))
	}
	s.Say(words...)
	const before = 4 // events that come before the first word
	s.Hold(1)        // only the response's name
	p := newProgram(t, t.TempDir(), "--agent", "responses:"+llmtest.Model+"?background=true&token_env=LEAT_KILLER_KEY&base_url="+s.URL)
	p.env = append(p.env, "LEAT_KILLER_KEY="+llmtest.Key)
	c := begin(t, p)
	if _, err := c.Create(t.Context(), leat.CreateOptions{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	ack, err := c.Send(t.Context(), "a", "go")
	if err != nil {
		t.Fatal(err)
	}
	seen := func(ok func(*transcript.Turn, string) bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), calmLimit)
		defer cancel()
		text := ""
		err := c.Follow(ctx, "a", func(u leat.Update) error {
			turn := u.Transcript.Turn(ack.Turn)
			if turn == nil {
				return nil
			}
			text = u.Transcript.Visible(ack.Turn)
			if !strings.HasPrefix(s.Text(), text) {
				return fmt.Errorf("readers see %q", text)
			}
			if ok(turn, text) {
				return leat.ErrStop
			}
			return nil
		})
		if err != nil {
			t.Fatalf("%v; readers see %q\n%s", err, text, p.said())
		}
	}
	again := func(sig syscall.Signal) {
		t.Helper()
		if err := p.end(sig); err != nil {
			t.Fatal(err)
		}
		if err := p.start(t.Context()); err != nil {
			t.Fatalf("%v\n%s", err, p.said())
		}
	}

	seen(func(turn *transcript.Turn, _ string) bool {
		return turn.Upstream != nil && turn.Upstream.Run == "resp_1"
	})
	again(syscall.SIGKILL)
	for n, word := range []int{0, 7, 20, 33, 59} {
		s.Hold(before + word + 1)
		if n%2 == 0 {
			seen(func(_ *transcript.Turn, text string) bool { return text == strings.Join(words[:word+1], "") })
		} // else it is killed while words come
		sig := syscall.SIGKILL
		if n == 2 {
			sig = syscall.SIGTERM
		}
		again(sig)
	}
	s.Hold(-1)
	seen(func(turn *transcript.Turn, _ string) bool { return !turn.Unfinished() })
	seen(func(turn *transcript.Turn, text string) bool {
		if turn.Outcome != event.Completed || text != s.Text() || turn.Usage == nil || turn.Usage.Output != 7 {
			t.Errorf("%+v: %q", turn, text)
		}
		return true
	})
	if err := p.end(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}

	var posts, after []string
	for _, call := range s.Calls() {
		if call.Method == "POST" {
			posts = append(posts, call.Path)
		} else {
			after = append(after, call.Path)
		}
		if call.Status != 200 {
			t.Errorf("%s %s was refused: %d", call.Method, call.Path, call.Status)
		}
	}
	// A kill may come before the restarted program has followed the response.
	if diff := cmp.Diff([]string{"/v1/responses"}, posts); diff != "" || len(after) < 4 {
		t.Errorf("followed after %v; requests: %s", after, diff)
	}
	wholeOnDisk(t, p.data, s.Text())
}

// wholeOnDisk checks in the log that the pieces of the answer are contiguous.
func wholeOnDisk(t *testing.T, data, want string) {
	t.Helper()
	j, err := sqlite.Open(sqlite.Options{Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}()
	r, err := j.Read(t.Context(), "a", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	var ends []event.Outcome
	for i := range r.Events {
		switch e := &r.Events[i]; e.Type {
		case event.PartAppend:
			if e.Offset != int64(len(text)) {
				t.Errorf("a piece is at offset %d, not %d", e.Offset, len(text))
			}
			text += e.Text
		case event.TurnEnd:
			ends = append(ends, e.Body.Outcome)
		}
	}
	if text != want || !slices.Equal(ends, []event.Outcome{event.Completed}) {
		t.Errorf("the log has %q, and the ends %v", text, ends)
	}
}
