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

// turnLimit is how long a turn may take. The slowest turns wait for a runtime that was killed to start again.
const turnLimit = 3 * time.Minute

// Client is a client of the gateway whose helpers fail the test on an error.
type Client struct{ *leat.Client }

// NewClient returns a client of the gateway at a URL.
func NewClient(url string) *Client { return &Client{&leat.Client{URL: url}} }

// CreateConversation creates a conversation with an agent and returns its id.
func (c *Client) CreateConversation(t *testing.T, agent string) string {
	t.Helper()
	created, err := c.Create(t.Context(), leat.CreateOptions{Agent: agent})
	if err != nil {
		t.Fatal(err)
	}
	return created.ID
}

// SendText sends a message to a conversation.
func (c *Client) SendText(t *testing.T, conversation, text string) leat.Ack {
	t.Helper()
	ack, err := c.Send(t.Context(), conversation, text)
	if err != nil {
		t.Fatal(err)
	}
	return ack
}

// Ask sends a message in a new conversation and waits for the answer.
func (c *Client) Ask(t *testing.T, agent, text string) *Answer {
	t.Helper()
	conversation := c.CreateConversation(t, agent)
	return c.WaitAnswer(t, conversation, c.SendText(t, conversation, text).Turn)
}

// WaitUntil follows a conversation, as a browser does, until wanted returns true. A failure shows the text of turn.
func (c *Client) WaitUntil(t *testing.T, conversation, turn string, wanted func(*transcript.Transcript) bool) *transcript.Transcript {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), turnLimit)
	defer cancel()
	var last *transcript.Transcript
	err := c.Follow(ctx, conversation, func(u leat.Update) error {
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
		t.Fatalf("the conversation never reached the expected state: %v; readers see\n%q", err, visible)
	}
	return last
}

// FullTranscript returns a conversation with all of its messages, older pages included.
func (c *Client) FullTranscript(t *testing.T, conversation string) *transcript.Transcript {
	t.Helper()
	tr, err := c.Transcript(t.Context(), conversation)
	if err != nil {
		t.Fatal(err)
	}
	for tr.Earlier {
		first := tr.Messages[0].ID
		page, err := c.Page(t.Context(), conversation, first, 0)
		if err != nil {
			t.Fatal(err)
		}
		if !tr.AddPage(page.Transcript, first, tr.Seq) {
			t.Fatalf("the page before message %s does not join the messages after it", first)
		}
	}
	return tr
}

// StartTurn sends a message and returns its turn as soon as more than 20 bytes of the answer are visible.
func (c *Client) StartTurn(t *testing.T, conversation, text string) string {
	t.Helper()
	turn := c.SendText(t, conversation, text).Turn
	c.WaitUntil(t, conversation, turn, func(tr *transcript.Transcript) bool { return len(tr.Visible(turn)) > 20 })
	return turn
}

// Answer is a turn that has ended, as the browser's API shows it.
type Answer struct {
	Turn     transcript.Turn
	Parts    []*transcript.Part
	Messages int
	Visible  string
}

// WaitAnswer waits until a turn has ended. The test fails if a reader who followed the turn and one who loads it afterwards see
// different texts.
func (c *Client) WaitAnswer(t *testing.T, conversation, turn string) *Answer {
	t.Helper()
	live := c.WaitUntil(t, conversation, turn, func(tr *transcript.Transcript) bool {
		u := tr.Turn(turn)
		return u != nil && u.State == transcript.TurnEnded
	})
	tr, err := c.Transcript(t.Context(), conversation)
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

// CheckOutcome fails the test unless the turn has the outcome want.
func (a *Answer) CheckOutcome(t *testing.T, want event.Outcome) {
	t.Helper()
	if a.Turn.Outcome != want {
		t.Errorf("the turn is %s (%+v), want %s; readers see\n%q", a.Turn.Outcome, a.Turn.Error, want, a.Visible)
	}
}

// CheckText fails the test unless the visible text is want.
func (a *Answer) CheckText(t *testing.T, want string) {
	t.Helper()
	if a.Visible != want {
		t.Errorf("readers see\n%q\nthe model streamed\n%q", a.Visible, want)
	}
}

// CheckBeginning fails the test unless the visible text is a non-empty beginning of whole.
func (a *Answer) CheckBeginning(t *testing.T, whole string) {
	t.Helper()
	if a.Visible == "" || !strings.HasPrefix(whole, a.Visible) {
		t.Errorf("readers see\n%q\nwant a beginning of\n%q", a.Visible, whole)
	}
}

// CheckReasoning fails the test unless the reasoning is want, apart from surrounding space.
func (a *Answer) CheckReasoning(t *testing.T, want string) {
	t.Helper()
	got := ""
	for _, p := range a.PartsOf(event.KindReasoning) {
		got += p.Text(event.Text)
	}
	if strings.TrimSpace(got) != want {
		t.Errorf("the reasoning is %q, want %q", got, want)
	}
}

// PartsOf returns the answer's parts of a kind, in order.
func (a *Answer) PartsOf(kind event.PartKind) (parts []*transcript.Part) {
	for _, p := range a.Parts {
		if p.Kind == kind {
			parts = append(parts, p)
		}
	}
	return parts
}

// CheckTools fails the test unless exactly the tools in want ran, in order and without an error. An entry has the form "command
// → output".
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

// Texts returns the joined texts of a turn's parts of one kind, as far as they have arrived.
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

// Output returns what the tools of a turn have printed so far.
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
