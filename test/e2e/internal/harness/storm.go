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

// Other controls the upstream: it acts as a second client that doesn't know Leat, and kills and starts the upstream.
type Other interface {
	// Send sends a message to a session and returns a function that waits for the answer.
	Send(t *testing.T, session, prompt string) (answered func(*testing.T))
	// Note adds a note to a session. It returns false if the upstream doesn't have notes.
	Note(t *testing.T, session, text string) bool
	// Kill kills the upstream.
	Kill()
	// Start starts the upstream again.
	Start(t *testing.T)
	// History returns the upstream's own history of a session.
	History(t *testing.T, session string) []Item
}

// Storm is a run of random turns against a real upstream. Connections are cut, Leat and the upstream are killed, and another
// client sends messages in the same sessions.
type Storm struct {
	*Client
	Leat  *Program
	Other Other
	// Chats are the conversations with their sessions upstream. If the upstream loses a whole session in a kill, a spare chat
	// replaces the session's chat.
	Chats, Spare []*Chat

	Turns   int
	Seed    uint64
	Scripts []Script

	model      *Model
	rng        *rand.Rand
	nextScript int // index of the next script
	lostChats  []*Chat
	losses     losses
}

// Chat is a conversation of a storm, with its session upstream.
type Chat struct {
	Conversation, Session string

	viewer      *Viewer
	sent        []string // prompts since the last kill
	forgettable []Item   // histories before the kills: the upstream may forget them, since it writes its files late
	lastHistory []Item   // history before the upstream lost the session; nil if it still has the session
}

// NewStorm returns a storm of LEAT_STORM turns and its model. It skips the test if LEAT_STORM isn't set. The same LEAT_SEED
// gives the same sequence of turns, apart from the programs' timing.
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
	replies := map[string][]Reply{}
	for _, script := range s.Scripts {
		replies[script.Name] = script.Replies
	}
	s.model = NewModel(t, replies)
	return s, s.model
}

// BadNetwork starts a proxy in front of the upstream that cuts connections at random. It returns the proxy's address and a
// function that ends the cuts.
func (s *Storm) BadNetwork(t *testing.T, upstream *Program) (address string, mend func()) {
	t.Helper()
	// With this mean a connection survives the handshake, some answers and some histories.
	proxy, err := badnet.Listen(strings.TrimPrefix(upstream.URL, "http://"), badnet.Faults{Seed: s.Seed, Total: -1, MeanBytes: 400 << 10, Stall: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() }) // the result of the test doesn't depend on it
	return proxy.Addr(), func() {
		proxy.Mend()
		t.Logf("%d connections were cut", proxy.Cuts())
	}
}

// Run runs the turns, and stops after the first one that fails.
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

// open creates a chat's session with a first turn.
func (s *Storm) open(t *testing.T, c *Chat) {
	t.Helper()
	c.viewer = s.View(t, c.Conversation)
	s.ask(t, c)
}

// step runs turn n in a chat, and returns which kind of turn it was.
func (s *Storm) step(t *testing.T, n int, c *Chat) string {
	switch kind := s.rng.IntN(100); {
	case kind < 35:
		s.ask(t, c)
		return "plain"
	case kind < 55:
		s.send(t, c)(t)
		return "by another client"
	case kind < 65:
		turn := s.begin(t, c)
		answered := s.send(t, c)
		s.WaitAnswer(t, c.Conversation, turn)
		answered(t)
		return "another client sends during the turn"
	case kind < 75:
		answered := s.send(t, c)
		s.ask(t, c)
		answered(t)
		return "sent during another client's turn"
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
		return "Leat is killed during the turn"
	default:
		turn := s.begin(t, c)
		s.restart(t)
		s.WaitAnswer(t, c.Conversation, turn)
		return "the upstream is killed during the turn"
	}
}

// restart kills the upstream during the turn that was started last and starts it again. It records what the upstream lost.
func (s *Storm) restart(t *testing.T) {
	t.Helper()
	script := s.nextScript - 1
	before := make([][]Item, len(s.Chats))
	for i, c := range s.Chats {
		before[i] = s.Other.History(t, c.Session)
	}
	s.Other.Kill()
	streamed := s.model.TakeStreamed()
	for i, c := range s.Chats {
		s.losses.add(nil, c.sent, before[i])
		c.sent = nil
	}
	s.losses.add(streamed, nil, slices.Concat(before...))
	s.Other.Start(t)
	for i, c := range s.Chats {
		c.forgettable = append(c.forgettable, before[i]...)
		if len(before[i]) > 0 && len(s.Spare) > 0 && len(s.Other.History(t, c.Session)) == 0 {
			t.Logf("the upstream has lost session %s", c.Session)
			// The reader may not have received the texts of the turn that was running.
			c.lastHistory = slices.DeleteFunc(before[i], func(item Item) bool { return s.belongsTo(script, item) })
			s.lostChats = append(s.lostChats, c)
			s.Chats[i], s.Spare = s.Spare[0], s.Spare[1:]
			s.open(t, s.Chats[i])
		}
	}
}

// prompt returns the next prompt and records it as sent to a chat.
func (s *Storm) prompt(c *Chat) string {
	s.nextScript++
	p := s.Scripts[s.nextScript-1].Prompt
	c.sent = append(c.sent, p)
	return p
}

// ask runs a turn from its message to its end.
func (s *Storm) ask(t *testing.T, c *Chat) {
	t.Helper()
	s.WaitAnswer(t, c.Conversation, s.SendText(t, c.Conversation, s.prompt(c)).Turn)
}

// begin starts a turn and returns as soon as some of its answer is visible, or it has ended.
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

// agreeLimit is how long the last changes may take to reach the reader.
const agreeLimit = time.Minute

// Agree waits until every conversation has the upstream's history, for a live viewer and for one that loads it now, with each
// turn ended once. It fails the test if that takes longer than agreeLimit.
func (s *Storm) Agree(t *testing.T) {
	t.Helper()
	for _, c := range append(s.lostChats, s.Chats...) {
		var faults []string
		var summary string
		for limit := time.Now().Add(agreeLimit); ; time.Sleep(time.Second) { // the upstream doesn't announce that its history is complete
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

// faults returns the differences in a chat, and a summary of what was compared.
func (s *Storm) faults(t *testing.T, c *Chat) (faults []string, summary string) {
	tr := s.FullTranscript(t, c.Conversation)
	lost := undelivered(tr)
	seen, history := VisibleItems(tr), c.lastHistory
	if history == nil {
		history = s.Other.History(t, c.Session)
	}
	var missing, explained []Item
	faults = Compare(seen, history, func(i Item) bool {
		switch {
		case slices.Contains(c.forgettable, i) && !slices.Contains(history, i), slices.Contains(lost, i):
			missing = append(missing, i)
		case s.losses.explain(i):
			missing, explained = append(missing, i), append(explained, i)
		default:
			return false
		}
		return true
	})
	for _, i := range s.losses.unexplained(explained) {
		faults = append(faults, "the reader has, more often than the upstream lost it, "+i.String())
	}
	summary = fmt.Sprintf("the reader has %d items in %d turns, the upstream %d items; lost by the upstream when it was killed: %v", len(seen), len(tr.Turns), len(history), missing)
	unlike, doubled := c.viewer.Differs(seen)
	for _, f := range unlike {
		faults = append(faults, "live viewer (as reader) against a reload (as upstream): "+f)
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

// undelivered returns the messages of turns that failed without any text. They may not have reached the upstream, which drops a
// message that waits for another client's run if its sender's connection is cut.
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

// belongsTo reports whether an item is from a script.
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
