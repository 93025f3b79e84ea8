package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/transcript"
)

// readSize is how many bytes of a pushed body are taken at once: what a fast agent sends between two commits.
const readSize = 32 << 10

// bodyLimit is how long the end of a body is waited for once its turn is over.
const bodyLimit = 250 * time.Millisecond

// ingest is one connection of a producer.
type ingest struct {
	n        *native
	p        gateway.Principal
	producer *gateway.Producer
	w        http.ResponseWriter
	r        *http.Request
	skip     int64 // bytes at the beginning of the body that are committed already
	last     gateway.PushAck
}

// ingestEnd is the last line of an answer: where the stream stands, and what became of the turn.
type ingestEnd struct {
	Offset  int64                `json:"offset"`
	Seq     int64                `json:"seq"`
	Ended   bool                 `json:"ended"`
	State   transcript.TurnState `json:"state,omitempty"`
	Outcome event.Outcome        `json:"outcome,omitempty"`
	// Error and Reason say why the turn failed, or why the connection ended before its body did; Status is then what the
	// answer's status would have been, had it not been sent already.
	Error  string `json:"error,omitempty"`
	Reason string `json:"reason,omitempty"`
	Status int    `json:"status,omitempty"`
}

// ingestAnswer is a line that tells of what a person has answered.
type ingestAnswer struct {
	Answer *event.Answer `json:"answer"`
}

// errCut says that the body ended without its end.
var errCut = errors.New("native: body cut short")

// run takes the body in, writes acknowledgements meanwhile, and says at the end what became of it.
func (g *ingest) run(status int) error {
	ctx, cancel := context.WithCancel(g.r.Context())
	defer cancel()
	rc := http.NewResponseController(g.w)
	if strings.EqualFold(g.r.Header.Get("Expect"), "100-continue") {
		g.w.WriteHeader(http.StatusContinue) // else the final status would tell the client to keep its body
	}
	st, err := g.n.s.OpenStream(g.w, g.r, status, server.NDJSON)
	if err != nil {
		return errors.Join(err, g.producer.Close(false))
	}
	taken := make(chan error, 1)
	go func() { taken <- g.take(ctx) }()
	err, done := g.acknowledge(ctx, st, taken)
	if !done && err == nil {
		// A body mostly ends right after its stream. Where the connection is closed before that, a proxy loses the answer.
		select {
		case err = <-taken:
			done = true
		case <-time.After(bodyLimit):
		case <-ctx.Done():
		}
	}
	if !done {
		cancel()
		_ = rc.SetReadDeadline(time.Unix(1, 0)) // wakes a read that waits for a silent producer
		if terr := <-taken; err == nil {
			err = terr
		}
	}
	if cerr := g.producer.Close(errors.Is(err, io.EOF)); cerr != nil {
		err = cerr
	}
	return g.end(context.WithoutCancel(ctx), st, err)
}

// take reads the body and hands it on. It returns io.EOF where the body ended as bodies do, else errCut or why the turn
// takes no more.
func (g *ingest) take(ctx context.Context) error {
	if _, err := io.CopyN(io.Discard, g.r.Body, g.skip); err != nil {
		return errCut
	}
	buf := make([]byte, readSize)
	for {
		n, err := g.r.Body.Read(buf)
		if n > 0 {
			if err := g.producer.Write(ctx, buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return io.EOF
		case err != nil:
			return errCut
		}
	}
}

// acknowledge writes acknowledgements until the body is taken (done), the turn is over or the connection is to end.
func (g *ingest) acknowledge(ctx context.Context, st *server.Stream, taken <-chan error) (err error, done bool) {
	acks := g.producer.Acks()
	var pause <-chan time.Time
	for {
		answers, more := g.producer.Answers()
		for i := range answers {
			line, err := json.Marshal(ingestAnswer{&answers[i]})
			if err != nil {
				return fmt.Errorf("answer: %w", err), false
			}
			if err := st.Write(append(line, '\n')); err != nil {
				return errCut, false
			}
		}
		select {
		case <-more:
		case g.last = <-acks:
			line, err := json.Marshal(g.last)
			if err != nil {
				return fmt.Errorf("acknowledgement: %w", err), false
			}
			if err := st.Write(append(line, '\n')); err != nil {
				return errCut, false
			}
			acks, pause = nil, time.After(ackEvery)
		case <-pause:
			acks, pause = g.producer.Acks(), nil
		case err := <-taken:
			return err, true
		case <-g.producer.Over():
			return nil, false
		case <-ctx.Done():
			return context.Cause(ctx), false
		}
	}
}

// end writes the last line. What is no fault of the server's is no error.
func (g *ingest) end(ctx context.Context, st *server.Stream, err error) error {
	var bad *dialect.Error
	if errors.As(err, &bad) {
		select { // the gateway is about to end the turn for it
		case <-g.producer.Over():
		case <-time.After(endLimit):
		}
	}
	line := ingestEnd{}
	t, terr := g.settle(ctx, &line)
	over := false
	select {
	case <-g.producer.Over():
		over = true
	default:
	}
	switch {
	case over && !line.Ended && bad == nil:
		err = server.ErrShutdown // this process has given the turn up; what ended the reading of the body followed from that
	case terr != nil && (err == nil || errors.Is(err, io.EOF)):
		err = terr
	case line.Ended && t.Error != nil:
		line.Error, line.Reason = t.Error.Message, t.Error.Code
	}
	if !quiet(err, line.Ended) {
		d := server.Describe(err)
		if errors.Is(err, gateway.ErrTurnOver) {
			d = server.Errorf(http.StatusConflict, gateway.ReasonConflict, "another connection has taken over")
		}
		line.Error, line.Reason, line.Status = d.Message, d.Reason, d.Status
	}
	out, merr := json.Marshal(line)
	if merr != nil {
		return fmt.Errorf("last line: %w", merr)
	}
	_ = st.Write(append(out, '\n')) // a producer that is gone asks with HEAD
	if line.Status == http.StatusInternalServerError {
		return err
	}
	return nil
}

// settle fills in how far the stream is committed and what has become of the turn.
func (g *ingest) settle(ctx context.Context, line *ingestEnd) (t transcript.Turn, err error) {
	look := func() error {
		_, t, err = g.n.gw.Turn(ctx, g.p, gateway.ActionAgent, g.producer.Turn)
		line.State, line.Ended, line.Outcome = t.State, t.State == transcript.Ended, t.Outcome
		return err
	}
	if err := look(); err != nil {
		g.newest()
		line.Offset, line.Seq = g.last.Offset, g.last.Seq // a gateway that has stopped says no more than what it has acknowledged
		return t, err
	}
	var committed int64
	var perr error
	if !line.Ended {
		// What was handed on is committed when this returns, and with it the end that the stream may have had.
		committed, _, perr = g.n.gw.PushStatus(ctx, g.p, g.producer.Turn)
		if err := look(); err != nil {
			return t, err
		}
	}
	g.newest()
	line.Offset, line.Seq = max(committed, g.last.Offset), g.last.Seq
	if !line.Ended {
		return t, perr
	}
	line.Seq = max(line.Seq, t.EndSeq)
	line.Offset = max(line.Offset, g.producer.Offset())
	return t, nil
}

// quiet reports whether state and outcome already say all there is to say of an error.
func quiet(err error, ended bool) bool {
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, errCut), errors.Is(err, context.Canceled):
		return true // the body's end, or nobody is there to read it
	case errors.Is(err, gateway.ErrTurnOver):
		return ended // bytes after the end, or a stop
	}
	return false
}

// newest takes an acknowledgement that was not written yet.
func (g *ingest) newest() {
	select {
	case g.last = <-g.producer.Acks():
	default:
	}
}
