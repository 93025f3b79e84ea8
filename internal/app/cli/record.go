// The command record: one message to an agent in a temporary gateway, and its bytes as a recording that can be replayed.

package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/app/cli/console"
	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/app/serve"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/inspection"
	"github.com/leat-dev/leat/internal/service/capture"
	"github.com/leat-dev/leat/internal/store/journal/memory"
	"github.com/leat-dev/leat/transcript"
)

// recordCmd sends one message to an agent and stores the exchanged bytes as a recording, from which the agent can be
// replayed and its dialect tested. It needs no running gateway and no configuration.
type recordCmd struct {
	Agent  string   `required:"" help:"Agent, in the form of serve --agent. Kinds: ${kinds}." placeholder:"SPEC"`
	Output string   `short:"o" required:"" help:"File to create; it must not exist." placeholder:"FILE"`
	Text   []string `arg:"" help:"Message; - reads it from standard input."`
}

// Run sends the message in a temporary gateway, of which only the recording remains: its journal is in memory, and
// its captures are in a temporary folder.
//
// The output file is created before the agent is called, so that a wrong path costs no request to a model. It stays
// if a turn fails, because the recording of a failure is often the interesting one. It is removed only if the agent
// exchanges no bytes, such as the demo.
func (c *recordCmd) Run(a *app) (err error) {
	text, err := a.text(c.Text)
	if err != nil {
		return err
	}
	// The agent has the form of the flag --agent, with the same secrets and options, and is made without a
	// configuration.
	var specs config.Agents
	if err := specs.Parse([]string{c.Agent}); err != nil {
		return fmt.Errorf("%w: --agent: %w", errUsage, err)
	}
	spec := specs[0]
	recorded, err := a.kinds.Make(spec)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	log := slog.New(slog.DiscardHandler)
	roster := gateway.NewRoster(log)
	defer roster.Close()
	if err := roster.Add(spec.Name, gateway.Agent{Agent: recorded, Kind: spec.Kind, Silence: spec.Silence, Secrets: serve.Secrets(a.kinds, spec, a.lookup)}); err != nil {
		return err
	}
	f, err := os.OpenFile(c.Output, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	defer func() {
		// The error of the capture is replaced: the cause is the kind of the agent, which the user can change.
		if err = errors.Join(err, f.Close()); errors.Is(err, gateway.ErrNotKept) {
			err = errors.Join(fmt.Errorf("nothing was recorded, because agents of kind %s exchange no bytes", spec.Kind), os.Remove(c.Output))
		}
	}()
	dir, err := os.MkdirTemp("", "leat-record-")
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	raw, err := capture.Open(capture.Options{Dir: dir, Retention: recordKeep, Size: recordSize, Log: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, raw.Close()) }()
	j := memory.New()
	// The gateway has no titles, quotas, webhooks or attachments: only what is needed to run a turn and to capture
	// its bytes.
	gw, err := gateway.New(gateway.Config{Journal: j, Dialects: a.dialects, Agents: roster, DefaultAgent: spec.Name, Log: log, Raw: raw})
	if err != nil {
		return err
	}
	roster.Start()
	if err := gw.Start(a.ctx); err != nil {
		return err
	}
	// The shutdown must happen also if the context is done, so it gets a context without its end. The deferred calls
	// run in reverse order: the gateway ends before its captures are closed and deleted.
	defer func() { err = errors.Join(err, gw.Shutdown(context.WithoutCancel(a.ctx))) }()
	r := recorder{app: a, gw: gw, screen: newScreen(a.stdout, a.terminal(a.stdout), a.columns())}
	if err := r.ask(a.ctx, text); err != nil {
		return err
	}
	turns := inspection.New(gw, inspection.Config{Journal: j, Captures: raw, Dialects: a.dialects, Agents: roster})
	if err := turns.WriteRecording(a.ctx, r.principal, r.turn, f); err != nil {
		return err
	}
	fmt.Fprintf(a.stderr, "recorded %s; play it with leat serve --agent 'replay:%s'\n", c.Output, c.Output)
	return nil
}

// The limits are above any recording, so that nothing is deleted before it is written to the file.
const (
	recordKeep = 365 * 24 * time.Hour
	recordSize = 4 << 30
)

// recorder sends one message to an agent and shows the answer. It acts as the admin of the temporary gateway.
type recorder struct {
	app       *app
	gw        *gateway.Gateway
	principal gateway.Principal
	screen    *screen
	conv      string
	turn      string
	lines     <-chan string // the lines that the user types to answer questions
}

// ask sends the message and returns when the turn has ended. An interrupt stops the turn.
//
// It draws the conversation after each change of the feed. feed.Notify is called before feed.View: a change between
// the two closes the channel, so none is missed. While the agent waits for an answer, lines from standard input
// answer it; an empty line is ignored, and the end of the input denies the request, because an answer can't arrive any
// more. A command that the gateway refuses, such as a stop of a turn that has just ended, is not an error.
func (r *recorder) ask(ctx context.Context, text string) error {
	r.principal = gateway.Principal{Admin: true}
	conv, _, err := r.gw.Create(ctx, r.principal, gateway.CreateOptions{})
	if err != nil {
		return err
	}
	r.conv = conv.ID
	ack, err := r.gw.Do(ctx, r.principal, r.conv, gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: text}})
	if err != nil {
		return err
	}
	r.turn = ack.Turn
	feed, err := r.gw.Feed(ctx, r.principal, r.conv)
	if err != nil {
		return err
	}
	defer feed.Release()
	// An interrupt stops the turn through the gateway, so that the end of the turn is recorded like any other.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	defer signal.Stop(signals)
	skip := map[string]bool{ack.Message: true}
	for {
		changed := feed.Notify()
		turnEnded := false
		var request *event.Request
		// The transcript may only be used inside the function, so the question is copied for use after it.
		feed.View(func(t *transcript.Transcript) {
			r.screen.draw(t, skip)
			turn := t.Turn(r.turn)
			if turnEnded = turn.State == transcript.TurnEnded; !turnEnded && len(turn.Requests) > 0 {
				q := turn.Requests[0].Request
				request = &q
			}
		})
		if turnEnded {
			return nil
		}
		var lines <-chan string
		// Input is read only while a question is open. Otherwise a line that is typed early would answer a question
		// that the user has not seen.
		if request != nil {
			if r.lines == nil {
				r.lines = readLines(r.app.in)
			}
			lines = r.lines
		}
		command := gateway.Command{Type: gateway.CommandStop, Turn: r.turn}
		select {
		case <-changed:
			continue
		case <-signals:
		case line, ok := <-lines:
			if ok && strings.TrimSpace(line) == "" {
				continue
			}
			command = gateway.Command{Type: gateway.CommandAnswer, Turn: r.turn, Request: request.ID, Decision: event.Deny}
			if ok {
				command.Decision, command.Text = console.Decide(line, request)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
		// A refused command leaves the state as it is, and the loop shows the next change.
		var rejected *gateway.Rejection
		if _, err := r.gw.Do(ctx, r.principal, r.conv, command); err != nil && !errors.As(err, &rejected) {
			return err
		}
	}
}
