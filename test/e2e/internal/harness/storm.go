//go:build e2e

package harness

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/test/badnet"
	"github.com/leat-dev/leat/transcript"
)

// Other is another client of the upstream, which knows nothing of Leat, and whoever starts the upstream.
type Other interface {
	// Send sends a message into a session, and returns a function that waits until it is answered.
	Send(t *testing.T, session, prompt string) (answered func(*testing.T))
	// Note puts a note into a session; false if the upstream has no such thing.
	Note(t *testing.T, session, text string) bool
	// Kill kills the upstream.
	Kill()
	// Start starts it again.
	Start(t *testing.T)
	// History returns what the upstream keeps of a session.
	History(t *testing.T, session string) []Item
}

// Storm is a run of turns against a real upstream in which connections are cut, Leat and the upstream are killed, and another
// client talks in the same sessions.
type Storm struct {
	*Client
	Leat  *Program
	Other Other
	// Chats are the conversations, and the sessions to which they belong upstream. A spare one takes the place of one whose session the
	// upstream loses as a whole when it is killed.
	Chats, Spare []*Chat

	Turns   int
	Seed    uint64
	Scripts []Script

	model      *Model
	rng        *rand.Rand
	nextScript int // script
	lostChats  []*Chat
	losses     losses
}

// Chat is a conversation of a storm.
type Chat struct {
	Conversation, Session string

	viewer      *Viewer
	sent        []string // prompts
	forgettable []Item   // what the upstream had before it was killed, which it may forget: it does not write its files at once
	lastHistory []Item   // what the upstream had of a session before it lost all of it; nil if it has the session
}

// NewStorm returns a storm of LEAT_STORM turns, with the scripts for its model; without the variable it skips the test. LEAT_SEED
// repeats a storm, as far as the timing of the programs lets it.
func NewStorm(t *testing.T, tool func(command string) Call) (s *Storm, model *Model) {
	turns, err := strconv.Atoi(os.Getenv("LEAT_STORM"))
	if err != nil {
		t.Skip("SKIPPED: set LEAT_STORM=24 for a storm of 24 turns, which takes five minutes")
	}
	s = &Storm{Turns: turns, Seed: uint64(time.Now().UnixNano())}
	if seed, err := strconv.ParseUint(os.Getenv("LEAT_SEED"), 10, 64); err == nil {
		s.Seed = seed
	}
	t.Logf("%d turns; LEAT_SEED=%d repeats them", s.Turns, s.Seed)
	s.rng = rand.New(rand.NewPCG(s.Seed, 0))
	s.Scripts = Scripts(s.rng, 2*s.Turns+10, tool)
	says := map[string][]Reply{}
	for _, one := range s.Scripts {
		says[one.Name] = one.Replies
	}
	s.model = NewModel(t, says)
	return s, s.model
}

// BadNetwork returns the address of a proxy before an upstream that cuts connections at random, and a function that ends that.
func (s *Storm) BadNetwork(t *testing.T, upstream *Program) (address string, mend func()) {
	t.Helper()
	// A connection carries the handshake, some answers and some histories until it is cut.
	proxy, err := badnet.Listen(strings.TrimPrefix(upstream.URL, "http://"), badnet.Faults{Seed: s.Seed, Total: -1, Mean: 400 << 10, Stall: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() }) // the test is over
	return proxy.Addr(), func() {
		proxy.Mend()
		t.Logf("%d connections were cut", proxy.Cuts())
	}
}

// Run takes the turns. It stops at the first that fails.
func (s *Storm) Run(t *testing.T) {
	for _, c := range s.Chats {
		s.open(t, c)
	}
	for n := range s.Turns {
		begin := time.Now()
		what := s.step(t, n, s.Chats[s.rng.IntN(len(s.Chats))])
		t.Logf("turn %d: %s, %v", n, what, time.Since(begin).Round(time.Millisecond))
		if t.Failed() {
			return
		}
	}
}

// open begins a chat, which makes its session.
func (s *Storm) open(t *testing.T, c *Chat) {
	t.Helper()
	c.viewer = s.View(t, c.Conversation)
	s.ask(t, c)
}

// step is one turn, and what goes wrong in it.
func (s *Storm) step(t *testing.T, n int, c *Chat) string {
	switch kind := s.rng.IntN(100); {
	case kind < 35:
		s.ask(t, c)
		return "plain"
	case kind < 55:
		s.send(t, c)(t)
		return "another client's"
	case kind < 65:
		turn := s.begin(t, c)
		answered := s.send(t, c)
		s.WaitAnswer(t, c.Conversation, turn)
		answered(t)
		return "another client speaks in it"
	case kind < 75:
		answered := s.send(t, c)
		s.ask(t, c)
		answered(t)
		return "sent while another client's runs"
	case kind < 83:
		if s.Other.Note(t, c.Session, fmt.Sprintf("a note of turn %d", n)) {
			return "a note"
		}
		s.ask(t, c)
		return "plain"
	case kind < 93:
		turn := s.begin(t, c)
		s.Leat.Signal(syscall.SIGKILL)
		s.Leat.Start(t)
		s.WaitAnswer(t, c.Conversation, turn)
		return "Leat is killed in it"
	default:
		turn := s.begin(t, c)
		s.restart(t)
		s.WaitAnswer(t, c.Conversation, turn)
		return "the upstream is killed in it"
	}
}

// restart kills the upstream in the turn that was begun last, and notes what it has lost by that.
func (s *Storm) restart(t *testing.T) {
	t.Helper()
	script := s.nextScript - 1
	before := make([][]Item, len(s.Chats))
	for i, c := range s.Chats {
		before[i] = s.Other.History(t, c.Session)
	}
	s.Other.Kill()
	given := s.model.TakeStreamed()
	for i, c := range s.Chats {
		s.losses.add(nil, c.sent, before[i])
		c.sent = nil
	}
	s.losses.add(given, nil, slices.Concat(before...))
	s.Other.Start(t)
	for i, c := range s.Chats {
		c.forgettable = append(c.forgettable, before[i]...)
		if len(before[i]) > 0 && len(s.Spare) > 0 && len(s.Other.History(t, c.Session)) == 0 {
			t.Logf("the upstream has lost session %s", c.Session)
			// The reader may lack the newest texts.
			c.lastHistory = slices.DeleteFunc(before[i], func(item Item) bool { return s.belongsTo(script, item) })
			s.lostChats = append(s.lostChats, c)
			s.Chats[i], s.Spare = s.Spare[0], s.Spare[1:]
			s.open(t, s.Chats[i])
		}
	}
}

// prompt returns the next prompt, for a chat.
func (s *Storm) prompt(c *Chat) string {
	s.nextScript++
	p := s.Scripts[s.nextScript-1].Prompt
	c.sent = append(c.sent, p)
	return p
}

// ask is a turn from its beginning to its end.
func (s *Storm) ask(t *testing.T, c *Chat) {
	t.Helper()
	s.WaitAnswer(t, c.Conversation, s.SendText(t, c.Conversation, s.prompt(c)).Turn)
}

// begin starts a turn and returns when it has said something.
func (s *Storm) begin(t *testing.T, c *Chat) (turn string) {
	t.Helper()
	turn = s.SendText(t, c.Conversation, s.prompt(c)).Turn
	s.WaitUntil(t, c.Conversation, turn, func(tr *transcript.Transcript) bool {
		u := tr.Turn(turn)
		return tr.Visible(turn) != "" || u != nil && u.State == transcript.TurnEnded
	})
	return turn
}

func (s *Storm) send(t *testing.T, c *Chat) (answered func(*testing.T)) {
	t.Helper()
	return s.Other.Send(t, c.Session, s.prompt(c))
}

// agreeLimit is how long the last things may take to reach the reader.
const agreeLimit = time.Minute

// Agree waits until each conversation shows what the upstream keeps, to a live viewer and to one that comes now, each turn ended
// once.
func (s *Storm) Agree(t *testing.T) {
	t.Helper()
	for _, c := range append(s.lostChats, s.Chats...) {
		var faults []string
		var summary string
		for limit := time.Now().Add(agreeLimit); ; time.Sleep(time.Second) { // the upstream has no event for having written all
			faults, summary = s.faults(t, c)
			if len(faults) == 0 || time.Now().After(limit) {
				break
			}
		}
		if len(faults) > 0 {
			t.Errorf("conversation %s differs from session %s:\n%s", c.Conversation, c.Session, strings.Join(faults, "\n"))
		}
		t.Logf("conversation %s: %s", c.Conversation, summary)
	}
}

// faults returns what differs in a conversation, and how much was compared.
func (s *Storm) faults(t *testing.T, c *Chat) (faults []string, summary string) {
	tr := s.FullTranscript(t, c.Conversation)
	untaken := undelivered(tr)
	seen, history := VisibleItems(tr), c.lastHistory
	if history == nil {
		history = s.Other.History(t, c.Session)
	}
	var missing, explained []Item
	faults = Compare(seen, history, func(i Item) bool {
		switch {
		case slices.Contains(c.forgettable, i) && !slices.Contains(history, i), slices.Contains(untaken, i):
			missing = append(missing, i)
		case s.losses.explain(i):
			missing, explained = append(missing, i), append(explained, i)
		default:
			return false
		}
		return true
	})
	for _, i := range s.losses.unexplained(explained) {
		faults = append(faults, "more often than the upstream lost it, the reader has "+i.String())
	}
	summary = fmt.Sprintf("the reader has %d items of %d turns, the upstream %d items; the upstream lost, since it was killed: %v", len(seen), len(tr.Turns), len(history), missing)
	unlike, doubled := c.viewer.Differs(seen)
	for _, f := range unlike {
		faults = append(faults, "a live viewer, beside a reload as upstream: "+f)
	}
	for _, turn := range doubled {
		faults = append(faults, "ended more than once: "+turn)
	}
	for _, turn := range tr.Turns {
		if turn.State != transcript.TurnEnded {
			faults = append(faults, "not ended: "+turn.ID)
		}
	}
	return faults, summary
}

// untaken returns the messages whose turns failed without any text: they may not have reached the upstream, and it forgets a message
// that waits for another client's run when the connection that sent it is cut.
func undelivered(tr *transcript.Transcript) (items []Item) {
	for _, u := range tr.Turns {
		if u.State != transcript.TurnEnded || u.Outcome == event.Completed || tr.Visible(u.ID) != "" {
			continue
		}
		for _, m := range tr.Messages {
			if m.Role == event.User && (m.ID == u.Answers || m.Turn == u.ID) {
				items = append(items, Item{ItemUser, strings.TrimSpace(m.Visible())})
			}
		}
	}
	return items
}

// said reports whether an item is of a script.
func (s *Storm) belongsTo(script int, i Item) bool {
	if i.Kind == ItemUser {
		return i.Text == s.Scripts[script].Prompt
	}
	return slices.ContainsFunc(s.Scripts[script].Replies, func(say Reply) bool {
		if i.Kind == ItemTool {
			return slices.ContainsFunc(say.Calls, func(call Call) bool { return strings.Contains(i.Text, call.command()) })
		}
		return strings.HasPrefix(strings.TrimSpace(strings.Join(say.Words, "")), i.Text)
	})
}
