// The command chat: a conversation in the terminal, with the answer as it is written.

package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/app/cli/console"
)

// chatCmd is an interactive chat, or sends a single message and prints the answer. A message comes from the
// arguments, or from standard input if that is not a terminal.
type chatCmd struct {
	remote
	Conversation string   `short:"c" help:"Continue the conversation with this id, or the beginning of it. Default: a new one." placeholder:"ID"`
	Agent        string   `help:"Agent of a new conversation." placeholder:"NAME"`
	JSON         bool     `name:"json" help:"With TEXT: print the result as JSON when the turn has ended."`
	Text         []string `arg:"" optional:"" help:"Send this message, print the answer and exit; - reads it from standard input. Default: an interactive chat."`
}

// Run follows the conversation in one goroutine, which draws it, and sends what the user types from this one. Drawing continues
// while a command waits for the gateway, so a slow gateway delays no text.
//
// A single message is a session that ends with its answer. Its output is quiet, which means only the final text or
// JSON without progress, if standard output is not a terminal or --json is set: the output may be the input of
// another program. The second goroutine has always ended when Run prints the result, so s.final needs no lock then.
func (c *chatCmd) Run(a *app) error {
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	s := &session{
		app: a, client: c.client(),
		ownMessages: map[string]bool{}, changed: make(chan struct{}, 1), screen: newScreen(a.stdout, a.terminal(a.stdout), a.columns()),
	}
	text := ""
	if len(c.Text) > 0 || !inputIsTerminal(a.in) {
		var err error
		if len(c.Text) == 0 {
			c.Text = []string{"-"}
		}
		if text, err = a.text(c.Text); err != nil {
			return err
		}
	}
	// --json and a pipe make the output input of a program, which wants the result alone.
	s.single = text != ""
	s.quiet = s.single && (c.JSON || !s.screen.t.is)
	if err := s.open(ctx, c.Conversation, c.Agent); err != nil {
		return c.explain(err)
	}
	// The channel has room for the second interrupt, which must not be lost while the first one stops the turn.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt)
	defer signal.Stop(signals)
	if input, output, ok := c.terminals(a); ok && !s.single {
		return c.explain(c.console(ctx, s, input, output, signals))
	}

	var following sync.WaitGroup
	followErr := make(chan error, 1)
	following.Go(func() { followErr <- s.follow(ctx) })
	// Without a terminal the input was the message, and there is nothing more to read: a nil channel is never ready.
	var lines <-chan string
	if !s.single || inputIsTerminal(a.in) {
		lines = readLines(a.in)
	}
	err := s.talk(ctx, text, lines, signals, followErr)
	// The goroutine of follow has to end before the result is printed, since both write to the screen.
	cancel()
	following.Wait()
	if err != nil || text == "" {
		return c.explain(err)
	}
	return s.outcome(c.JSON)
}

// terminals returns input and output if both are a terminal that understands control sequences.
func (c *chatCmd) terminals(a *app) (input, output *os.File, ok bool) {
	input, isIn := a.in.(*os.File)
	output, isOut := a.stdout.(*os.File)
	return input, output, isIn && isOut && isTerminal(input) && a.terminal(output).colour
}

// console shows the conversation of a session in the terminal until the user leaves.
func (c *chatCmd) console(ctx context.Context, s *session, input, output *os.File, signals chan os.Signal) error {
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP)
	conversation, err := s.client.Conversation(ctx, s.conversation)
	if err != nil {
		return err
	}
	agent := conversation.Agent
	if agent == "" {
		agents, err := s.client.Agents(ctx)
		if err != nil {
			return err
		}
		for _, candidate := range agents {
			if candidate.Default {
				agent = candidate.Name
			}
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // the history is kept in memory only
	}
	last, err := console.Run(ctx, console.Options{
		Client: s.client, Conversation: s.conversation, Agent: agent, Untitled: s.untitled, Input: input, Output: output,
		HistoryPath: console.HistoryPath(s.app.getenv, home), Getenv: s.app.getenv, Signals: signals,
	})
	fmt.Fprintln(s.app.stderr, s.screen.t.style(dim, "Continue with leat chat -c "+last))
	return err
}

// session is an interactive chat, or a single message with its answer. [session.follow] receives updates and draws
// them in one goroutine, and [session.talk] sends commands in another. They share the fields below mu.
type session struct {
	app          *app
	client       *leat.Client
	conversation string
	quiet        bool   // print only the result
	untitled     bool   // the conversation has no title yet
	single       bool   // one message is sent, and the session ends with its answer
	singleTurn   string // the turn of that message

	mu          sync.Mutex // guards the fields below
	screen      *screen
	ownMessages map[string]bool // messages that the user typed
	ready       bool            // the conversation is displayed
	turn        string          // the running or queued turn, if any
	request     *event.Request  // the question that the turn is waiting for, if any
	changed     chan struct{}   // buffers one: some field has changed
	final       final
}

// final is the result of a single message, and the JSON of --json. Turn is empty until the turn has ended.
type final struct {
	Conversation string        `json:"conversation"`
	Turn         string        `json:"turn"`
	Outcome      event.Outcome `json:"outcome"`
	Error        *event.Error  `json:"error,omitempty"`
	Text         string        `json:"text"`
	Usage        *event.Usage  `json:"usage,omitempty"`
}

// open finds the conversation, or creates one if id is empty. A new conversation has no title; [session.say] gives it one with the
// first message.
func (s *session) open(ctx context.Context, id, agent string) (err error) {
	if id != "" {
		s.conversation, err = findConversation(ctx, s.client, id)
		return err
	}
	// The id goes to standard error: it is needed to continue the chat later, but isn't part of the answer.
	c, err := s.client.Create(ctx, leat.CreateOptions{Agent: agent})
	if err != nil {
		return err
	}
	s.conversation, s.untitled = c.ID, true
	if !s.quiet {
		fmt.Fprintln(s.app.stderr, s.screen.t.style(dim, "conversation "+c.ID))
	}
	return nil
}

// follow draws the conversation until the context is done. The client reconnects by itself and delivers every state
// once, so a lost connection is only reported: one note when it is lost, however many retries fail, and one when it
// is back.
func (s *session) follow(ctx context.Context) error {
	isLost := false
	o := leat.FollowOptions{OnDisconnect: func(err error, next time.Duration) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !isLost && !s.quiet {
			s.screen.note("(connection lost; reconnecting)")
		}
		isLost = true
	}}
	err := s.client.FollowWith(ctx, s.conversation, o, func(u leat.Update) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if u.Connected {
			if isLost && !s.quiet {
				s.screen.note("(connected)")
			}
			isLost = false
			return nil
		}
		s.ready = true
		s.turn = ""
		turn, request := console.OpenTurn(u.Transcript)
		if s.request = request; turn != nil {
			s.turn = turn.ID
		}
		if !s.quiet {
			s.screen.draw(u.Transcript, s.ownMessages)
		}
		// say sets singleTurn under the lock that this function needs, so it is set before the first update of that
		// turn is handled.
		if turn := u.Transcript.Turn(s.singleTurn); turn != nil && !turn.Unfinished() {
			s.final = final{s.conversation, turn.ID, turn.Outcome, turn.Error, u.Transcript.Visible(turn.ID), turn.Usage}
		}
		select {
		case s.changed <- struct{}{}:
		default:
		}
		return nil
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// talk sends the lines that the user types, until the input ends, the user interrupts it, or a single message is
// answered.
//
// The loop looks at the state again after every event, because changed only says that something has changed. The
// first interrupt stops the running turn, and the chat continues; the second one for the same turn, or one while no
// turn is running, ends the chat. If a single message is typed at a terminal, the lines after it answer the agent's
// questions, so the end of the input doesn't end the session.
func (s *session) talk(ctx context.Context, text string, lines <-chan string, signals <-chan os.Signal, followErr <-chan error) error {
	if text != "" {
		if err := s.say(ctx, text); err != nil {
			return err
		}
	}
	// The turn that the last interrupt stopped. A second interrupt for the same turn means that the user doesn't want
	// to wait for its end.
	stoppedTurn := ""
	for {
		turn, _, hasEnded := s.state()
		if hasEnded {
			return nil
		}
		if turn == "" && !s.single {
			s.prompt()
		}
		select {
		case <-s.changed:
		case err := <-followErr:
			return err
		case line, ok := <-lines:
			if !ok {
				if s.single {
					lines = nil // wait for the answer
					continue
				}
				return nil
			}
			// A question may have arrived since the start of the loop. The line answers what the screen shows now.
			turn, request, _ := s.state()
			if err := s.handleLine(ctx, line, turn, request); err != nil {
				if err := s.complain(err); err != nil {
					return err
				}
			}
		case <-signals:
			turn, _, _ := s.state()
			if turn == "" || turn == stoppedTurn {
				return nil
			}
			stoppedTurn = turn
			if _, err := s.client.Stop(ctx, s.conversation, turn); err != nil {
				return err
			}
		}
	}
}

// state returns the running turn, its question, and whether the turn of a single message has ended. talk calls it for
// each decision instead of remembering an earlier result.
func (s *session) state() (turn string, request *event.Request, hasEnded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn, s.request, s.final.Turn != ""
}

// prompt draws the prompt once the conversation is displayed, unless the prompt is already the last thing on the
// screen.
func (s *session) prompt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ready || s.screen.last == promptKey {
		return
	}
	s.screen.begin(promptKey)
	s.screen.write(s.screen.t.style(bold, "› "))
}

// promptKey is the key of the prompt on the screen.
const promptKey = "prompt"

// handleLine answers the question if there is one, and sends the line as a message otherwise. Empty lines do nothing,
// so that pressing Enter while text arrives sends nothing.
func (s *session) handleLine(ctx context.Context, line, turn string, request *event.Request) error {
	s.mu.Lock()
	s.screen.last, s.screen.atLineStart = "", true // the terminal has echoed the line
	s.mu.Unlock()
	switch word := strings.ToLower(strings.TrimSpace(line)); {
	case word == "":
		return nil
	case request != nil:
		decision, text := console.Decide(line, request)
		_, err := s.client.Answer(ctx, s.conversation, turn, request.ID, decision, text)
		return err
	}
	return s.say(ctx, line)
}

// say sends a message and, in a conversation without a title, makes a title from it. It holds the lock during the
// request: the message may arrive through follow before the acknowledgement, and would then be drawn a second time
// below the line that the user typed.
func (s *session) say(ctx context.Context, text string) error {
	s.mu.Lock()
	defer s.mu.Unlock() // so that the message is not drawn before it is in s.ownMessages
	ack, err := s.client.Do(ctx, s.conversation, leat.Command{Type: "send", Message: &leat.Message{Text: text, Source: "cli"}})
	if err != nil {
		return err
	}
	s.ownMessages[ack.Message] = true
	s.turn = cmp.Or(s.turn, ack.Turn) // its events have not arrived yet
	if s.untitled {
		s.untitled = false
		title := console.Title(text)
		if _, err := s.client.Do(ctx, s.conversation, leat.Command{Type: "update", Title: &title}); err != nil {
			return err
		}
	}
	if s.single && s.singleTurn == "" {
		s.singleTurn = ack.Turn
	}
	return nil
}

// complain displays the reason for which the gateway refused a command. The user can correct that, for example with
// another answer. Any other error is returned and ends the session.
func (s *session) complain(err error) error {
	e, ok := errors.AsType[*leat.Error](err)
	if !ok || !e.Rejected {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.screen.note("(" + e.Message + ")")
	return nil
}

// outcome prints the result of a single message and returns an error unless the turn was completed, so that the exit
// status tells a script whether there is an answer. Partial text of a failed turn is printed nevertheless.
func (s *session) outcome(asJSON bool) error {
	f := s.final
	switch {
	case f.Turn == "":
		return errors.New("stopped before the answer was complete")
	case asJSON:
		if err := json.NewEncoder(s.app.terminalSafe(s.app.stdout)).Encode(f); err != nil {
			return err
		}
	case s.quiet && f.Text != "":
		if _, err := fmt.Fprintln(s.app.terminalSafe(s.app.stdout), f.Text); err != nil {
			return err
		}
	}
	if f.Outcome == event.Completed {
		return nil
	}
	if f.Error != nil {
		return fmt.Errorf("the turn %s: %s", outcomeVerb(f.Outcome), f.Error.Message)
	}
	return fmt.Errorf("the turn %s", outcomeVerb(f.Outcome))
}

// outcomeVerb returns an outcome in a form that follows "the turn": failed and completed stay, stopped becomes "was
// stopped".
func outcomeVerb(o event.Outcome) string {
	if o == event.Failed || o == event.Completed {
		return string(o)
	}
	return "was " + string(o)
}

// readLines reads lines until the input ends, and then closes the channel. A line longer than maxTyped ends the
// input. The goroutine ends with the input or the program, because a read from a terminal can't be cancelled.
func readLines(r io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		in := bufio.NewScanner(r)
		in.Buffer(nil, maxTyped)
		for in.Scan() {
			lines <- in.Text()
		}
	}()
	return lines
}

// maxTyped is the maximum length of a line, in bytes. It fits long pasted texts.
const maxTyped = 1 << 20

// inputIsTerminal reports whether a person types the input. Otherwise it is a file or a pipe, which is one message.
func inputIsTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && isTerminal(f)
}

// columns returns the width of the output: the environment variable COLUMNS if it is set, else the width of most
// terminals. Only status lines and tables depend on it, so the terminal itself is not asked.
func (a *app) columns() int {
	if n, err := strconv.Atoi(a.getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	return defaultColumns
}

// defaultColumns is the assumed width of a terminal if COLUMNS is not set.
const defaultColumns = 80
