// The stream of one run over the REST API: numbered chunks, which continue after a cut at the last number.

package letta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/letta"
	"github.com/leat-dev/leat/sse"
)

// stream sends a request and decodes its response until the stream ends. It returns nil if the turn has ended or a stop reason
// was decoded, and an error that wraps errBroken if the stream ended before that, including a stream without a byte for
// times.stall.
//
// The request doesn't use ctx directly, for two reasons. When the stream's last chunk has ended the turn, ctx is done, but the
// connection can be used again only if the body is read to its end. And a turn that is stopped before the server has named its
// run stays connected for up to times.abort: without the name the run couldn't be cancelled.
func (r *restAgent) stream(ctx context.Context, t *turn, send streamRequest, resumes bool) error {
	call, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	lateCancel := time.AfterFunc(r.times.abort, func() { cancel(context.Cause(ctx)) })
	lateCancel.Stop()
	defer lateCancel.Stop()
	run := ""
	if resumes {
		run, _ = t.position()
	}
	t.setStreamRun(run)
	defer context.AfterFunc(ctx, func() {
		switch {
		case t.isFinished():
		case isStopped(ctx) && t.currentRun() == "":
			// The first chunk names the run, which has to be known to cancel it.
			lateCancel.Reset(r.times.abort)
		default:
			cancel(context.Cause(ctx))
		}
	})()
	var res *http.Response
	// While a request is on its way the server may have started a run. Only a rejection (4xx) proves that it hasn't.
	err := r.retry(ctx, t.emitter, func() (err error) {
		t.isRejected = false
		t.setAwaitsRun(true)
		res, err = send(call)
		var f *failure
		if t.isRejected = errors.As(err, &f) && f.status/100 == 4; t.isRejected {
			t.setAwaitsRun(false)
		}
		return err
	})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	t.setStreamCancel(cancel)
	defer t.setStreamCancel(nil)
	stall := time.AfterFunc(r.times.stall, func() { cancel(errBroken) })
	defer stall.Stop()
	t.emitter.Body(letta.Dialect().Name)
	chunks := chunkReader{agent: r, turn: t, checkGap: resumes}
	buf := make([]byte, 32<<10)
	total := 0
	for hasEnd := false; ; {
		n, rerr := res.Body.Read(buf)
		if n > 0 {
			stall.Reset(r.times.stall)
			t.emitter.CaptureReceived(buf[:n])
			if err := chunks.feed(buf[:n]); err != nil {
				return err
			}
			if ctx.Err() != nil && t.currentRun() != "" && !t.isFinished() {
				return context.Cause(ctx)
			}
			if total += n; total > r.maxStream {
				return tooLarge
			}
		}
		// After a stop reason the server gets only a short time for usage and [DONE]. Some servers leave the stream open.
		isFinished := t.isFinished()
		if !hasEnd && (isFinished || t.hasStopReason()) {
			hasEnd = true
			stall.Reset(r.times.finish)
		}
		switch {
		case rerr == nil && !chunks.sawDone:
		case isFinished:
			return nil
		case chunks.sawDone, t.hasStopReason():
			// The turn has ended, although usage or [DONE] is missing.
			return t.decode(dialect.Frame{Data: []byte("[DONE]")})
		case errors.Is(rerr, io.EOF):
			return fmt.Errorf("%w: it ended without its end", errBroken)
		default:
			return fmt.Errorf("%w: %w", errBroken, rerr)
		}
	}
}

// chunkReader splits a response's body into chunks and decodes them.
type chunkReader struct {
	agent    *restAgent
	turn     *turn
	sse      sse.Reader
	checkGap bool // the next chunk has to follow the last one that was decoded
	sawDone  bool // [DONE] was received
}

// feed decodes the chunks in b. The first one names the run, which is recorded at once, so that the poller doesn't take the run for
// another client's. It returns errPending if the run didn't start because of an open approval, unless the request has denied that.
func (in *chunkReader) feed(b []byte) error {
	return in.sse.Feed(b, func(e sse.Event) error {
		if in.sawDone {
			return nil // a second [DONE], or chunks after the first
		}
		if string(e.Data) == "[DONE]" {
			in.sawDone = true
		}
		if in.turn.currentRun() == "" {
			in.noteRun(e.Data)
			in.agent.setTurnOfRun(in.turn.currentRun(), in.turn)
		}
		if in.checkGap {
			if err := in.checkFirst(e.Data); err != nil {
				return err
			}
		}
		if len(in.turn.snapshot().RefusedCalls) == 0 && pendingRun(e.Data) {
			return errPending
		}
		return in.turn.decode(dialect.Frame{Event: e.Name, Data: e.Data})
	})
}

// noteRun records the run that a chunk belongs to.
func (in *chunkReader) noteRun(data []byte) {
	var m struct {
		Run string `json:"run_id"`
	}
	if json.Unmarshal(data, &m) == nil {
		in.turn.setStreamRun(m.Run)
	}
}

// hiddenSeqs is the number of seq_ids that may be missing between two chunks: a run's stop reason, usage and end have numbers
// too.
const hiddenSeqs = 3

// checkFirst returns errGap if chunks are missing before the first chunk of a resumed stream.
func (in *chunkReader) checkFirst(data []byte) error {
	var m struct {
		Type string `json:"message_type"`
		Run  string `json:"run_id"`
		Seq  int64  `json:"seq_id"`
	}
	if json.Unmarshal(data, &m) != nil || m.Type == "ping" || m.Seq == 0 {
		return nil
	}
	in.checkGap = false
	run, seq := in.turn.position()
	if m.Run == run && m.Seq > seq+1+hiddenSeqs {
		return errGap
	}
	return nil
}
