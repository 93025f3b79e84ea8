//go:build e2e

package harness

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// turnLimit is how long a turn may take here.
const turnLimit = 3 * time.Minute

// Client is a client of the gateway that fails its test itself.
type Client struct{ *leat.Client }

// NewClient is one of the gateway at an address.
func NewClient(url string) *Client { return &Client{&leat.Client{URL: url}} }

// Converse makes a conversation with an agent.
func (s *Client) CreateConversation(t *testing.T, agent string) string {
	t.Helper()
	c, err := s.Create(t.Context(), leat.CreateOptions{Agent: agent})
	if err != nil {
		t.Fatal(err)
	}
	return c.ID
}

// Say says something in a conversation.
func (s *Client) SendText(t *testing.T, c, text string) leat.Ack {
	t.Helper()
	ack, err := s.Send(t.Context(), c, text)
	if err != nil {
		t.Fatal(err)
	}
	return ack
}

// Ask says something in a conversation of its own and returns what was answered.
func (s *Client) Ask(t *testing.T, agent, text string) *Answer {
	t.Helper()
	c := s.CreateConversation(t, agent)
	return s.WaitAnswer(t, c, s.SendText(t, c, text).Turn)
}

// Until follows a conversation, as a browser does, until it is as wanted.
func (s *Client) WaitUntil(t *testing.T, c, turn string, wanted func(*transcript.Transcript) bool) *transcript.Transcript {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), turnLimit)
	defer cancel()
	var last *transcript.Transcript
	err := s.Follow(ctx, c, func(u leat.Update) error {
		last = u.Transcript
		if wanted(last) {
			return io.EOF
		}
		return nil
	})
	if last == nil || !wanted(last) {
		visible := ""
		if last != nil {
			visible = last.Visible(turn)
		}
		t.Fatalf("it does not come to that: %v; readers see\n%q", err, visible)
	}
	return last
}

// Whole returns a conversation with all of its messages.
func (s *Client) FullTranscript(t *testing.T, c string) *transcript.Transcript {
	t.Helper()
	tr, err := s.Transcript(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for tr.Earlier {
		first := tr.Messages[0].ID
		page, err := s.Page(t.Context(), c, first, 0)
		if err != nil {
			t.Fatal(err)
		}
		if !tr.AddPage(page.Transcript, first, tr.Seq) {
			t.Fatalf("the page before message %s does not fit", first)
		}
	}
	return tr
}

// Begun says something and returns its turn when a part of the answer was seen.
func (s *Client) StartTurn(t *testing.T, c, text string) string {
	t.Helper()
	turn := s.SendText(t, c, text).Turn
	s.WaitUntil(t, c, turn, func(tr *transcript.Transcript) bool { return len(tr.Visible(turn)) > 20 })
	return turn
}

// Answer is what the browser's API shows of a turn that has ended.
type Answer struct {
	Turn     transcript.Turn
	Parts    []*transcript.Part
	Messages int
	Visible  string
}

// Answered waits for a turn's end. A live reader and one that comes afterwards have to see the same.
func (s *Client) WaitAnswer(t *testing.T, c, turn string) *Answer {
	t.Helper()
	live := s.WaitUntil(t, c, turn, func(tr *transcript.Transcript) bool {
		u := tr.Turn(turn)
		return u != nil && u.State == transcript.TurnEnded
	})
	tr, err := s.Transcript(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	a := &Answer{Turn: *live.Turn(turn), Visible: tr.Visible(turn)}
	if got := live.Visible(turn); got != a.Visible {
		t.Errorf("live readers see\n%q\na reload\n%q", got, a.Visible)
	}
	for _, m := range tr.Messages {
		if m.Turn == turn && m.Role == event.Assistant {
			a.Parts = append(a.Parts, m.Parts...)
			a.Messages++
		}
	}
	return a
}

// Ended wants an outcome.
func (a *Answer) CheckOutcome(t *testing.T, want event.Outcome) {
	t.Helper()
	if a.Turn.Outcome != want {
		t.Errorf("the turn is %s (%+v), want %s; readers see\n%q", a.Turn.Outcome, a.Turn.Error, want, a.Visible)
	}
}

// Says wants the visible text.
func (a *Answer) CheckText(t *testing.T, want string) {
	t.Helper()
	if a.Visible != want {
		t.Errorf("readers see\n%q\nthe model said\n%q", a.Visible, want)
	}
}

// SaysPartOf wants a beginning of a text, and not nothing.
func (a *Answer) CheckBeginning(t *testing.T, whole string) {
	t.Helper()
	if a.Visible == "" || !strings.HasPrefix(whole, a.Visible) {
		t.Errorf("readers see\n%q\nwhich is no part of\n%q", a.Visible, whole)
	}
}

// Thinks wants the reasoning, spaces around it apart.
func (a *Answer) CheckReasoning(t *testing.T, want string) {
	t.Helper()
	got := ""
	for _, p := range a.PartsOf(event.KindReasoning) {
		got += p.Text(event.Text)
	}
	if strings.TrimSpace(got) != want {
		t.Errorf("it thinks %q, want %q", got, want)
	}
}

// Of are the parts of a kind.
func (a *Answer) PartsOf(kind event.PartKind) (parts []*transcript.Part) {
	for _, p := range a.Parts {
		if p.Kind == kind {
			parts = append(parts, p)
		}
	}
	return parts
}

// Tools wants the commands that ran, each with what it printed.
func (a *Answer) CheckTools(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, p := range a.PartsOf(event.KindTool) {
		var in struct{ Command string }
		if err := json.Unmarshal([]byte(p.Text(event.Input)), &in); err != nil {
			t.Errorf("tool %s: input %q: %v", p.Name, p.Text(event.Input), err)
		}
		if p.State != event.PartDone {
			t.Errorf("tool %s is %s", in.Command, p.State)
		}
		got = append(got, in.Command+" → "+strings.TrimSpace(p.Text(event.Output)))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("tools\n%q\nwant\n%q", got, want)
	}
}

// Texts returns the texts of all parts of a kind that a turn has so far.
func Texts(tr *transcript.Transcript, turn string, kind event.PartKind) string {
	all := ""
	for _, m := range tr.Messages {
		for _, p := range m.Parts {
			if m.Turn == turn && p.Kind == kind {
				all += p.Text(event.Text)
			}
		}
	}
	return all
}

// Output is what all tools of a turn have printed so far.
func Output(tr *transcript.Transcript, turn string) string {
	all := ""
	for _, m := range tr.Messages {
		for _, p := range m.Parts {
			if m.Turn == turn {
				all += p.Text(event.Output)
			}
		}
	}
	return all
}
