// One request that pushes a stream: it reads the body, acknowledges what is durable, and ends the turn or leaves it for another
// request.

package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/push"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/transcript"
)

// A pushed body is read in pieces of at most firstRead bytes, as many as a slow agent sends at once. The limit doubles up to maxRead, about
// as many as a fast agent sends between two commits, when a piece reaches it.
const (
	firstRead = 512
	maxRead   = 32 << 10
)

// bodyLimit is how long a response waits for the end of the body after its turn has ended.
const bodyLimit = 250 * time.Millisecond

// ingest is one request of a producer.
//
// Two goroutines work on a request: one reads the body and writes to the producer, the other one
// writes the response. Only the latter uses the fields stream and last.
type ingest struct {
	n        *pushRoutes
	p        gateway.Principal
	producer *push.Producer
	stream   *server.Duplex
	skip     int64 // bytes at the start of the body that are already committed
	last     push.Ack
}

// ingestEnd is the last line of a response: the offset of the stream and the state of the turn.
type ingestEnd struct {
	Offset  int64                `json:"offset"`
	Seq     int64                `json:"seq"`
	IsOver  bool                 `json:"ended"`
	State   transcript.TurnState `json:"state,omitempty"`
	Outcome event.Outcome        `json:"outcome,omitempty"`
	// Error and Reason explain why the turn failed, or why the connection ended before its body did. Status is the HTTP status
	// of that error, which came too late for the response's own status line.
	Error  string `json:"error,omitempty"`
	Reason string `json:"reason,omitempty"`
	Status int    `json:"status,omitempty"`
}

// ingestAnswer is a line that delivers a user's answer to a question of the turn.
type ingestAnswer struct {
	Answer *event.Answer `json:"answer"`
}

// errInterrupted reports a body that ended without its last chunk.
var errInterrupted = errors.New("native: body interrupted")

// start sends the head, so that the client knows that the turn exists, and runs the request.
func (g *ingest) start(w http.ResponseWriter, r *http.Request, status int) error {
	var err error
	if g.stream, err = g.n.s.OpenDuplex(w, r, status, server.NDJSON); err != nil {
		return errors.Join(err, g.producer.Close(false))
	}
	return g.stream.Run(g.run)
}

// run reads the body, writes acknowledgements meanwhile, and ends the response with an ingestEnd line.
//
// The steps are: read the body while acknowledgements are written; stop the reader if the turn ended first; detach the producer; write the
// last line. Only a body that was read to its end closes the stream of the turn. After a broken
// connection, the turn waits for the producer to resume.
func (g *ingest) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	bodyRead := make(chan error, 1)
	go func() { bodyRead <- g.readBody(ctx) }()
	err, complete := g.acknowledge(ctx, bodyRead)
	if !complete && err == nil {
		// Most bodies end right after their turn. If the response ended first, a proxy could drop it together with the unread
		// body.
		select {
		case err = <-bodyRead:
			complete = true
		case <-time.After(bodyLimit):
		case <-ctx.Done():
		}
	}
	if !complete {
		cancel()
		g.stream.StopReading() // the producer may be silent
		if readErr := <-bodyRead; err == nil {
			err = readErr
		}
	}
	if closeErr := g.producer.Close(errors.Is(err, io.EOF)); closeErr != nil {
		err = closeErr
	}
	return g.end(context.WithoutCancel(ctx), err)
}

// readBody passes the body to the producer. It returns io.EOF at the end of the body, errInterrupted if the connection broke, or
// the error with which the turn refused more.
//
// It applies back pressure: Write blocks while the gateway can't take more, and then the body is not read
// and the producer's connection fills up.
func (g *ingest) readBody(ctx context.Context) error {
	if _, err := io.CopyN(io.Discard, g.stream.Body, g.skip); err != nil {
		return errInterrupted
	}
	buf := make([]byte, firstRead)
	for {
		n, err := g.stream.Body.Read(buf)
		if n > 0 {
			if err := g.producer.Write(ctx, buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return io.EOF
		case err != nil:
			return errInterrupted
		case n == len(buf) && n < maxRead:
			buf = make([]byte, 2*n)
		}
	}
}

// acknowledge writes acknowledgements and answers until the body is read (complete is true), the turn ends or ctx ends.
//
// Acks are for committed bytes only. After one was written, the next is taken from the channel after
// ackEvery at the earliest, so a fast stream does not cost one line per commit. Answers are written at
// once, because the agent waits for them. The context is that of the request, so it also ends at the
// shutdown.
func (g *ingest) acknowledge(ctx context.Context, bodyRead <-chan error) (err error, complete bool) {
	acks := g.producer.Acks()
	var pause <-chan time.Time
	for {
		answers, changed := g.producer.Answers()
		for i := range answers {
			line, err := json.Marshal(ingestAnswer{&answers[i]})
			if err != nil {
				return fmt.Errorf("answer: %w", err), false
			}
			if err := g.stream.Write(append(line, '\n')); err != nil {
				return errInterrupted, false
			}
		}
		select {
		case <-changed:
		case g.last = <-acks:
			line, err := json.Marshal(g.last)
			if err != nil {
				return fmt.Errorf("acknowledgement: %w", err), false
			}
			if err := g.stream.Write(append(line, '\n')); err != nil {
				return errInterrupted, false
			}
			acks, pause = nil, time.After(ackEvery)
		case <-pause:
			acks, pause = g.producer.Acks(), nil
		case err := <-bodyRead:
			return err, true
		case <-g.producer.Done():
			return nil, false
		case <-ctx.Done():
			return context.Cause(ctx), false
		}
	}
}

// end writes the last line. It returns only internal errors.
//
// A broken body is not an error of the turn: the line then has the offset at which to resume, and no
// error. An invalid stream fails its turn, so end waits for that, up to endLimit, to report the state that
// the turn has from then on.
func (g *ingest) end(ctx context.Context, err error) error {
	_, isInvalid := errors.AsType[*dialect.Error](err)
	if isInvalid {
		select { // the gateway is about to fail the turn
		case <-g.producer.Done():
		case <-time.After(endLimit):
		}
	}
	line := ingestEnd{}
	t, turnErr := g.finish(ctx, &line)
	released := false
	select {
	case <-g.producer.Done():
		released = true
	default:
	}
	switch {
	case released && !line.IsOver && !isInvalid:
		err = server.ErrShutdown // this process gave the turn up, and the body's error is a consequence of that
	case turnErr != nil && (err == nil || errors.Is(err, io.EOF)):
		err = turnErr
	case line.IsOver && t.Error != nil:
		line.Error, line.Reason = t.Error.Message, t.Error.Code
	}
	if !isExpected(err, line.IsOver) {
		d := server.Describe(err)
		if errors.Is(err, gateway.ErrTurnOver) {
			d = server.Errorf(http.StatusConflict, gateway.ReasonConflict, "another connection of the producer has taken over this turn")
		}
		line.Error, line.Reason, line.Status = d.Message, d.Reason, d.Status
	}
	b, merr := json.Marshal(line)
	if merr != nil {
		return fmt.Errorf("last line: %w", merr)
	}
	_ = g.stream.Write(append(b, '\n')) // best effort: a disconnected producer asks with HEAD
	if line.Status == http.StatusInternalServerError {
		return err
	}
	return nil
}

// finish fills in the committed offset and the state of the turn.
//
// The state is read again after Progress, because the commit can end the turn. The larger of the offsets
// is reported: the last acknowledgement and Progress are both committed positions, and either can be
// newer.
func (g *ingest) finish(ctx context.Context, line *ingestEnd) (t transcript.Turn, err error) {
	readTurn := func() error {
		_, t, err = g.n.gw.Turn(ctx, g.p, gateway.ActionAgent, g.producer.Turn)
		line.State, line.IsOver, line.Outcome = t.State, t.State == transcript.TurnEnded, t.Outcome
		return err
	}
	var committed push.Progress
	var statusErr error
	readErr := readTurn()
	if readErr == nil && !line.IsOver {
		// Progress commits everything that was pushed, and with it the end of the stream if that was part of it.
		committed, statusErr = g.n.pushes.Progress(ctx, g.p, g.producer.Turn)
		readErr = readTurn()
	}
	g.takeAck()
	line.Offset, line.Seq = max(committed.Offset, g.last.Offset), max(committed.Seq, g.last.Seq)
	if readErr != nil {
		return t, readErr // the gateway has stopped: only acknowledged bytes are certain
	}
	if !line.IsOver {
		return t, statusErr
	}
	line.Seq = max(line.Seq, t.EndSeq)
	line.Offset = max(line.Offset, g.producer.Offset())
	return t, nil
}

// isExpected reports whether the state and the outcome of the turn already explain err.
func isExpected(err error, turnEnded bool) bool {
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		return true // the body's end, or no client to read the line
	case errors.Is(err, gateway.ErrTurnOver):
		return turnEnded // bytes after the end of the stream, or a stop
	}
	return false
}

// takeAck takes an acknowledgement that was not written yet.
func (g *ingest) takeAck() {
	select {
	case g.last = <-g.producer.Acks():
	default:
	}
}
