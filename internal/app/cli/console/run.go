package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/term"

	leat "github.com/leat-dev/leat/clients/go"
)

// Options describe a chat on a terminal.
type Options struct {
	Client       *leat.Client
	Conversation string
	// Agent is the name to show until a turn names another one.
	Agent string
	// Untitled means that the first message becomes the title.
	Untitled bool
	// Input and Output must be terminals. Run doesn't close them.
	Input, Output *os.File
	// HistoryPath is the file with the messages of earlier chats; see [HistoryPath]. If it is empty, they are only in
	// memory.
	HistoryPath string
	// Getenv looks up the variables that describe the terminal and the desktop.
	Getenv func(string) string
	// Signals ends the chat with its first value. Keys such as Ctrl+C don't arrive here, because the terminal is in
	// raw mode.
	Signals <-chan os.Signal
}

const (
	// frameTime is the shortest time between two frames of an answer that grows. Keys are drawn at once. That is 30
	// frames a second, more than a person can read.
	frameTime = 33 * time.Millisecond
	// escapeTime is how long an escape character waits for the rest of a sequence before it is the key Escape.
	// Sequences arrive in one piece, except over slow connections. A longer time would delay the key Escape, which
	// stops a turn.
	escapeTime = 50 * time.Millisecond
	// sendTime is how long leaving waits for messages, answers and stops that are on their way. After that the
	// program leaves, and the gateway may or may not have them.
	sendTime = 5 * time.Second
)

// program is a running chat. Its loop uses all fields, so they need no lock; other goroutines only send to its
// channels.
type program struct {
	Options
	ctx      context.Context
	model    *model
	canvas   canvas
	decoder  decoder
	follower *follower
	runner   runner
	isDone   bool
}

// Run shows the chat until the user leaves, and restores the terminal, also after an error. It returns the id of the
// conversation that was shown last.
//
// When it returns, all goroutines have ended but one, which may still wait for a key. The end of ctx ends the
// requests, but not the chat; Signals does that.
func Run(ctx context.Context, o Options) (conversation string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	entries, historyErr := loadHistory(o.HistoryPath)
	restore, err := enterRaw(o.Input, o.Output)
	if err != nil {
		return o.Conversation, fmt.Errorf("terminal: %w", err)
	}
	defer func() { // also after a panic, whose text would otherwise be unreadable
		_, writeErr := io.WriteString(o.Output, "\x1b[?2004l\x1b[?25h")
		err = errors.Join(err, writeErr, restore())
	}()
	p := &program{Options: o, ctx: ctx, model: newModel(o.Conversation, o.Agent, entries, uuid.NewString)}
	if historyErr != nil {
		p.model.take(result{note: historyErr.Error()}) // the chat works without it
	}
	p.canvas.canReflow = o.Getenv("XTERM_VERSION") == "" && o.Getenv("TERM") != "linux" && o.Getenv("STY") == ""
	p.runner = runner{ctx: ctx, client: o.Client, getenv: o.Getenv, conversation: o.Conversation, isUntitled: o.Untitled, results: make(chan result)}
	_, err = io.WriteString(o.Output, "\x1b[?2004h") // bracketed paste
	if err == nil {
		err = p.loop()
	}
	cancel()
	p.follower.end()
	p.runner.goroutines.Wait()
	return p.model.conversation, err
}

// loop handles one event after another until the user leaves, or following the conversation fails for good.
//
// After each event it draws, unless the last frame was less than frameTime ago: then a timer draws, so that a fast
// answer costs at most one frame per frameTime. Keys set lastFrame to zero, which draws their effect at once.
func (p *program) loop() error {
	p.follower = follow(p.ctx, p.Client, p.model.conversation)
	sizes, stopSizes := watchSize(p.Output)
	defer stopSizes()
	input := readInput(p.ctx, p.Input)
	if err := p.resize(); err != nil {
		return err
	}
	var frame, escape <-chan time.Time
	lastFrame := time.Time{}
	for !p.isDone {
		select {
		case b, ok := <-input:
			if !ok {
				p.model.leave()
				p.isDone = true
				break
			}
			p.keys(p.decoder.decode(b))
			if escape = nil; p.decoder.isWaiting() {
				escape = time.After(escapeTime)
			}
			lastFrame = time.Time{}
		case <-escape:
			escape = nil
			p.keys(p.decoder.flush())
			lastFrame = time.Time{}
		case <-p.Signals:
			p.model.leave()
			p.isDone = true
		case <-sizes:
			if err := p.resize(); err != nil {
				return err
			}
			lastFrame = time.Time{}
		case s := <-p.follower.states:
			s.apply(p.model)
			close(s.handled)
		case err := <-p.follower.failed:
			return err
		case r := <-p.runner.results:
			p.result(r)
		case <-frame:
			frame = nil
			if err := p.draw(); err != nil {
				return err
			}
			lastFrame = time.Now()
			continue
		}
		if wait := frameTime - time.Since(lastFrame); wait <= 0 || p.isDone {
			frame = nil
			if err := p.draw(); err != nil {
				return err
			}
			lastFrame = time.Now()
		} else if frame == nil {
			frame = time.After(wait)
		}
	}
	p.runner.finish(sendTime)
	return nil
}

// keys passes keys to the model and begins the effects. Keys after one that leaves are dropped.
func (p *program) keys(keys []key) {
	for _, k := range keys {
		if k.Name == "redraw" {
			p.canvas.width = -1 // draws everything again
		}
		for _, e := range p.model.press(k) {
			switch e := e.(type) {
			case quit:
				p.isDone = true
				return
			case save: // at once, so that the file has the order in which messages were sent
				p.model.take(result{effect: e, err: appendHistory(p.HistoryPath, e.text)})
			default:
				p.runner.begin(e)
			}
		}
	}
}

// result passes the result of an effect to the model. A new conversation is followed instead of the old one. The old
// follower ends before the new one begins, so no state of the old conversation reaches the model after that.
func (p *program) result(r result) {
	p.runner.complete(r)
	p.model.take(r)
	if _, ok := r.effect.(startNew); ok && r.err == nil {
		p.follower.end()
		p.follower = follow(p.ctx, p.Client, r.text)
	}
}

// resize asks the terminal for its size. A terminal that reports 0 keeps the size before, which is 80 by 24 at first.
func (p *program) resize() error {
	width, height, err := term.GetSize(int(p.Output.Fd()))
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	if width > 0 && height > 0 { // some terminals don't know their size
		p.model.resize(width, height)
	}
	return nil
}

// draw writes the next frame. A terminal that is slow or stopped blocks the loop, and with it the follower. The
// gateway then merges what it hasn't sent yet, so nothing piles up.
func (p *program) draw() error {
	f := p.model.nextFrame()
	if _, err := io.WriteString(p.Output, p.canvas.draw(f, p.model.width)); err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	return nil
}

// readInput reads until the input ends, and then closes the channel. A read from a terminal can't always be cancelled, so the goroutine
// may end only with the program.
func readInput(ctx context.Context, r io.Reader) <-chan []byte {
	input := make(chan []byte)
	go func() {
		defer close(input)
		for {
			b := make([]byte, 4096)
			n, err := r.Read(b)
			if n > 0 {
				select {
				case input <- b[:n]:
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return input
}

// follower follows a conversation in another goroutine. The client reconnects by itself and delivers every state once.
type follower struct {
	// states is unbuffered. The goroutine waits until a state is handled before it delivers the next one.
	states chan state
	// failed gets the error after which the client gave up, such as that of a conversation that was deleted.
	failed chan error
	cancel context.CancelFunc
	// goroutine delivers the states. It ends when cancel is called, or following fails.
	goroutine sync.WaitGroup
}

// state is a change of the conversation or of its connection. The transcript may be read until handled is closed.
type state struct {
	update  leat.Update
	isLost  bool
	handled chan struct{}
}

// Every state of the conversation also shows that the connection works.
func (s state) apply(m *model) {
	switch {
	case s.isLost:
		m.lost()
	case s.update.Connected:
		m.connected()
	default:
		m.connected()
		m.update(s.update.Transcript, s.update.Events, s.update.Reset)
	}
}

// follow begins to follow a conversation. The caller must call end. The client owns the transcript of a state and
// continues to change it, so deliver waits until the model has taken what it needs, and doesn't stop waiting when ctx
// ends: the model may be reading.
func follow(ctx context.Context, client *leat.Client, conversation string) *follower {
	ctx, cancel := context.WithCancel(ctx)
	f := &follower{states: make(chan state), failed: make(chan error, 1), cancel: cancel}
	deliver := func(s state) error {
		s.handled = make(chan struct{})
		select {
		case f.states <- s:
		case <-ctx.Done():
			return ctx.Err()
		}
		<-s.handled
		return nil
	}
	f.goroutine.Go(func() {
		o := leat.FollowOptions{OnDisconnect: func(error, time.Duration) {
			_ = deliver(state{isLost: true}) // fails only when the follower ends
		}}
		err := client.FollowWith(ctx, conversation, o, func(u leat.Update) error { return deliver(state{update: u}) })
		if ctx.Err() == nil {
			f.failed <- err
		}
	})
	return f
}

// end stops following and waits for the goroutine. A nil follower has not begun.
func (f *follower) end() {
	if f == nil {
		return
	}
	f.cancel()
	f.goroutine.Wait()
}

// Title makes the title of a conversation from its first message.
func Title(text string) string { return Clip(oneLine(text), titleLength) }

// titleLength is the maximum length of a title that is made from the first message, in characters. Lists of conversations show about
// that many.
const titleLength = 60
