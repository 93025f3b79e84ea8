package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/voice"
)

const (
	// maxFrame is the size of the largest frame of a client in bytes: two seconds of audio, or a long text.
	maxFrame = 64_000
	// writeLimit is how long a frame may take to be written, and flushLimit a flush, which has its own.
	writeLimit = 10 * time.Second
	flushLimit = 5 * time.Second
	// pingEvery is the interval between two pings, and pingLimit how long the answer may take.
	pingEvery = 20 * time.Second
	pingLimit = 15 * time.Second
	// closeLimit is how long the farewell to a client may take.
	closeLimit = 2 * time.Second
	// orderLimit is how long an order may take. It continues when the connection ends, and a shutdown waits for it.
	orderLimit = 10 * time.Second
	// maxOrders is how many orders may wait. Beyond that, frames of the client wait.
	maxOrders = 64
)

// The close codes of the protocol, besides those of WebSockets.
const (
	closeIdle     websocket.StatusCode = 4008
	closeReplaced websocket.StatusCode = 4009
)

// connection is the voice connection of one person.
type connection struct {
	service      *Service
	socket       *websocket.Conn
	request      Request
	conversation Conversation
	log          *slog.Logger
	cancel       context.CancelCauseFunc
	reads        context.Context // of the reads; its end cuts the connection
	disconnect   context.CancelFunc
	session      *voice.Session
	microphone   *voice.Microphone // nil without a recogniser
	orders       chan func(context.Context)
	idle         *time.Timer
	tasks        sync.WaitGroup

	utterance []string // final texts of the current utterance; only the microphone's goroutine uses it

	// Only the reader uses the fields below.
	hasNoted   bool // the client knows that nothing is recognised
	hasDropped bool // the client knows that audio was dropped since the last utterance began
}

// newConnection returns a connection, which serve starts.
func newConnection(s *Service, socket *websocket.Conn, r Request, conversation Conversation, cancel context.CancelCauseFunc) *connection {
	socket.SetReadLimit(maxFrame)
	c := &connection{
		service: s, socket: socket, request: r, conversation: conversation, log: s.options.Log, cancel: cancel,
		orders: make(chan func(context.Context), maxOrders),
	}
	c.reads, c.disconnect = context.WithCancel(context.Background())
	o := voice.Options{Engine: s.options.Engine, Voice: r.Voice, Language: cmp.Or(r.Language, s.options.Language), Log: c.log}
	if o.Voice == "" && r.Language == "" {
		o.Voice = s.options.Voice // it may be unable to speak another language
	}
	c.session = voice.NewSession(o)
	if s.options.Recognizer != nil {
		c.microphone = voice.NewMicrophone(voice.MicrophoneOptions{
			Recognizer: s.options.Recognizer, Language: cmp.Or(r.Language, s.options.RecognitionLanguage), Detect: r.DetectsSpeech, OnSpeech: c.hearSpeech, OnResult: c.receiveResult, Log: c.log,
		})
	}
	return c
}

// serve runs the connection. It returns an error only if something inside of the gateway has failed.
//
// Everything ends with ctx, whose cause decides about the farewell. The reader ends last of all, when the farewell has closed the socket,
// because a close handshake needs a reader.
func (c *connection) serve(ctx context.Context) error {
	c.greet()
	closed := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(closed)
		c.close(context.Cause(ctx))
	})
	c.idle = time.AfterFunc(c.service.options.Idle, c.checkIdle)
	defer c.idle.Stop()
	c.goUntil(ctx, "write", func() error { return c.session.Run(ctx, output{c.socket}) })
	c.goUntil(ctx, "follow", func() error { return c.conversation.Follow(ctx, c.session, c.request.After.Turn) })
	c.tasks.Go(func() { c.carryOut(ctx) })
	c.tasks.Go(func() { c.ping(ctx) })
	if c.microphone != nil {
		c.tasks.Go(func() { c.microphone.Run(ctx) })
	}
	c.readFrames(ctx)
	c.cancel(errDisconnected)
	<-closed
	c.tasks.Wait()
	if h, ok := c.session.HeardMark(); ok {
		c.do(ctx, func(ctx context.Context) { c.mark(ctx, h) })
	}
	return c.failure(context.Cause(ctx))
}

// greet queues the first frames.
func (c *connection) greet() {
	o := &c.service.options
	ready := readyFrame{Type: "ready", Generation: 1, Speech: o.Engine != nil, Recognition: o.Recognizer != nil, VAD: "client", Detector: c.request.Detector, Session: c.request.Session}
	if c.request.DetectsSpeech {
		ready.VAD = "server"
	}
	c.session.Post(ready)
	if o.Engine == nil {
		c.session.Post(voice.Error(codeNoSpeech, "Answers aren't spoken, because no speech engine is configured.",
			"Read the answers in the conversation. An operator can install espeak-ng or set voice.speech.engine."))
	}
	if after := c.request.After; after.Turn != "" {
		c.session.Resume(after.Turn, after.Start, after.Samples)
	}
}

// internalError marks an error of the gateway itself, which is logged.
type internalError struct{ error }

// Unwrap returns the error.
func (e internalError) Unwrap() error { return e.error }

// failure returns the cause of the connection's end if it has to be logged.
func (c *connection) failure(cause error) error {
	var internal internalError
	if code, _ := c.expected(cause); code == 0 && errors.As(cause, &internal) {
		return internal.error
	}
	return nil
}

// expected returns the close code of a cause that the caller of [Service.Serve] knows, or 0.
func (c *connection) expected(cause error) (websocket.StatusCode, string) {
	if c.request.Farewell == nil {
		return 0, ""
	}
	return c.request.Farewell(cause)
}

// goUntil runs a task without which the connection makes no sense. Its error is a cause that the farewell may know, or a failure.
func (c *connection) goUntil(ctx context.Context, name string, task func() error) {
	c.tasks.Go(func() {
		err := task()
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, errDisconnected), errors.Is(err, voice.ErrTooSlow):
			c.cancel(err)
		default:
			c.cancel(internalError{fmt.Errorf("%s: %w", name, err)})
		}
	})
}

// carryOut carries out orders one after another. Those that wait when the connection ends are carried out too, because what the person
// has said must not be lost with the network.
func (c *connection) carryOut(ctx context.Context) {
	for {
		select {
		case order := <-c.orders:
			c.do(ctx, order)
			continue
		case <-ctx.Done():
		}
		select {
		case order := <-c.orders:
			c.do(ctx, order)
		default:
			return
		}
	}
}

// do carries out an order, within orderLimit.
func (c *connection) do(ctx context.Context, order func(context.Context)) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), orderLimit)
	defer cancel()
	order(ctx)
}

// order adds an order. Both the reader and the microphone call it, and neither may wait, so a queue that is full ends the connection.
func (c *connection) order(task func(ctx context.Context)) {
	select {
	case c.orders <- task:
	default:
		c.log.Warn("voice client sends faster than the gateway can store")
		c.cancel(voice.ErrTooSlow)
	}
}

// checkIdle ends the connection if it isn't used.
func (c *connection) checkIdle() {
	if c.session.IsBusy() {
		c.idle.Reset(c.service.options.Idle)
		return
	}
	c.cancel(errIdle)
}

// use notes that the person uses the connection.
func (c *connection) use() { c.idle.Reset(c.service.options.Idle) }

// ping ends the connection if its client doesn't answer.
func (c *connection) ping(ctx context.Context) {
	for retry.Sleep(ctx, pingEvery) == nil {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingLimit) // interrupting it would break the connection
		err := c.socket.Ping(limited)
		cancel()
		if err != nil {
			c.cancel(errDisconnected)
			return
		}
	}
}

// mark stores how far the person has heard an answer.
func (c *connection) mark(ctx context.Context, h voice.HeardMark) {
	if h.Turn == "" {
		return
	}
	if err := c.conversation.MarkHeard(ctx, h); err != nil {
		c.log.Warn("mark of what was heard not stored", "turn", h.Turn, "error", err)
	}
}

// close says why the connection ends, and closes it.
func (c *connection) close(cause error) {
	defer c.disconnect()
	defer func() { _ = c.socket.CloseNow() }()
	limit := time.AfterFunc(closeLimit, c.disconnect) // CloseNow would wait for a Close that has begun
	defer limit.Stop()
	frame, code, reason := c.farewell(cause)
	if code == 0 {
		return
	}
	if frame.Type != "" {
		if b, err := json.Marshal(frame); err == nil {
			_ = c.socket.Write(context.Background(), websocket.MessageText, b) // best effort: a close frame follows
		}
	}
	_ = c.socket.Close(code, reason)
}

// farewell returns the last frame and the close code for a cause. The code is 0 if the client is not there.
func (c *connection) farewell(cause error) (f voice.ErrorFrame, code websocket.StatusCode, reason string) {
	switch {
	case errors.Is(cause, errDisconnected):
		return f, 0, ""
	case errors.Is(cause, errReplaced):
		f = voice.Error(codeReplaced, "Voice was opened elsewhere for this conversation.", "Continue there, or connect again here.")
		return f, closeReplaced, "replaced"
	case errors.Is(cause, errIdle):
		return voice.Error(codeIdle, "Voice was closed after a long silence.", "Connect again when you want to talk."), closeIdle, "idle"
	case errors.Is(cause, errBusy):
		return voice.Error(codeBusy, "Too many people talk to this gateway now.", "Try again in a moment."), websocket.StatusTryAgainLater, "busy"
	case errors.Is(cause, errOddLength):
		return voice.Error(codeInvalid, "A frame of audio has an odd number of bytes.", "Send 16-bit samples."), websocket.StatusUnsupportedData, "odd length"
	case errors.Is(cause, voice.ErrTooSlow):
		return f, websocket.StatusTryAgainLater, "too slow"
	}
	if code, reason := c.expected(cause); code != 0 {
		return f, code, reason
	}
	if c.failure(cause) != nil {
		return f, websocket.StatusInternalError, "internal error"
	}
	return f, websocket.StatusServiceRestart, "restarting"
}
