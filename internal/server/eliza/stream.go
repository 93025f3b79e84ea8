// The stream of one answer: frames as the text grows, a beat in pauses, and one end.

package eliza

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/follow"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/sse"
)

// headersWithin is how long a command may take before the headers are sent without its result. Clients give up after 10 s
// without headers. A failure before them is a plain HTTP error.
const headersWithin = 2 * time.Second

// sendStream adds a message and streams its turn.
//
// The command runs in a goroutine with a context of its own, so a client that disconnects doesn't cancel a
// message that may already be stored. If its result arrives within headersWithin, an error is an HTTP
// error. Later errors are error frames, because the status was sent. Heartbeats are sent while the result
// is awaited.
func (s *surface) sendStream(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	body, c, err := readSend(r)
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	// AddViewer comes first: if the viewer limit refuses the stream, no message is added.
	leave, err := s.gw.AddViewer(p)
	if err != nil {
		return err
	}
	defer leave()
	type result struct {
		ack gateway.Ack
		err error
	}
	results := make(chan result, 1) // the handler always reads it before it returns
	go func() {
		ack, err := server.Do(r.Context(), s.gw, p, id, c)
		results <- result{ack, err}
	}()
	var res result
	var st *stream
	timer := time.NewTimer(headersWithin)
	defer timer.Stop()
	select {
	case res = <-results:
		if res.err != nil {
			return res.err
		}
		st = s.open(w, r)
	case <-timer.C:
		st = s.open(w, r)
		for isWaiting := true; isWaiting; {
			select {
			case res = <-results:
				isWaiting = false
			case <-st.ticker.C:
				st.beat()
			}
		}
	}
	defer st.ticker.Stop()
	if res.err != nil {
		return st.fail(res.err)
	}
	st.render.user = res.ack.Message
	st.render.tokens.deltas = body.StreamProtocol == deltaV2
	return st.turn(r.Context(), p, id, res.ack.Turn)
}

// attach resumes the stream of the turn that contains the client's last frame. Without Last-Event-ID it streams the running
// turn.
//
// The first frame after a resumption has the whole text, because the gateway doesn't know how much of it
// the client already has. Nothing is added to the conversation, so a client may attach as often as it
// likes.
func (s *surface) attach(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	id := r.PathValue("id")
	f, err := s.gw.Feed(r.Context(), p, id)
	if err != nil {
		return err
	}
	last := r.Header.Get("Last-Event-ID")
	turn, err := locate(r.Context(), f.Feed, last)
	f.Release()
	if err != nil {
		if errors.Is(err, errTurnGone) {
			return server.Errorf(http.StatusNotFound, server.ReasonNotFound, "no turn to attach to")
		}
		return err
	}
	leave, err := s.gw.AddViewer(p)
	if err != nil {
		return err
	}
	defer leave()
	st := s.open(w, r)
	defer st.ticker.Stop()
	if st.response.Head() {
		return nil
	}
	st.render.tokens.unknown = last != ""
	st.render.tokens.deltas = r.URL.Query().Get("streamProtocol") == deltaV2
	return st.turn(r.Context(), p, id, turn)
}

// locate returns the turn to attach to, or errTurnGone.
func locate(ctx context.Context, f *feed.Feed, last string) (string, error) {
	if last == "" {
		return foundTurn(runningTurn(f, false))
	}
	_, seq, ok := feed.Cursor(last).Parse()
	if !ok {
		return "", server.Invalid("invalid Last-Event-ID: send the id of a frame")
	}
	// the seq of another epoch or term does not identify a turn
	if !f.Knows(feed.Cursor(last)) {
		return "", errTurnGone
	}
	return turnAt(ctx, f, seq)
}

// stream is a response that streams a turn. Only one goroutine may use it.
type stream struct {
	s        *surface
	response *server.Stream
	render   render
	ticker   *time.Ticker
	buf      []byte
	metrics  *server.Viewer
	writeErr error // set once a write has failed
}

// open sends the headers and the first heartbeat. The caller must stop the ticker.
//
// A failed write is remembered and not returned: the turn runs on without the client, and the stream ends
// at the next state.
func (s *surface) open(w http.ResponseWriter, r *http.Request) *stream {
	st := &stream{s: s, ticker: time.NewTicker(s.heartbeat)}
	st.response, st.writeErr = s.srv.OpenStream(w, r, http.StatusOK, "text/event-stream")
	if !st.response.Head() {
		st.beat()
	}
	return st
}

// beat sends a heartbeat. Heartbeats keep proxies from closing a silent connection and let clients notice
// a broken one.
func (st *stream) beat() { st.write(heartbeat) }

var heartbeat = sse.AppendComment(nil, "heartbeat")

// write writes unless an earlier write failed. The first error stays in writeErr.
func (st *stream) write(b []byte) {
	if st.writeErr == nil && len(b) > 0 {
		st.writeErr = st.response.Write(b)
	}
}

// turn streams a turn to its end. At a shutdown it stops without a last frame, because the turn may continue and the client can
// attach again.
//
// After the done frame, the answer counts as read by the user who streamed it: the page that streams a
// conversation shows it.
func (st *stream) turn(ctx context.Context, p gateway.Principal, conversation, turn string) error {
	st.metrics = st.s.viewers.Open()
	defer st.metrics.Close()
	if st.render.tokens.unknown {
		st.metrics.SetResumed()
	}
	end := int64(0)
	err := st.s.follow(ctx, p, conversation, turn, false, follower{
		State: func(s *state) (finished bool, err error) {
			if st.buf, finished, err = st.render.next(st.buf[:0], s); err != nil {
				return true, err
			}
			if st.write(st.buf); len(st.buf) > 0 {
				st.metrics.Frame(len(st.buf))
			}
			if finished {
				end = s.turn.EndSeq
			}
			return finished, st.writeErr
		},
		Tick: func() error { st.beat(); return st.writeErr }, Ticks: st.ticker.C,
	})
	if ctx.Err() != nil || st.writeErr != nil || server.Restarting(err) {
		return nil // the client is gone, or will attach to the next process
	}
	if end > 0 && err == nil {
		st.s.markSeen(ctx, p, conversation, end)
	}
	return st.fail(err)
}

// fail ends a started stream with an error frame. It returns the error for the log.
func (st *stream) fail(err error) error {
	if err == nil {
		return nil
	}
	err = translate(err)
	e := server.Describe(err)
	f := errorFrame{Type: "error", UserMessageID: st.render.user, Message: e.Message, Reason: e.Reason, Retryable: e.RetryAfter > 0, RetryAfter: e.RetryAfter.Milliseconds()}
	b, encodeErr := server.Marshal(f)
	if encodeErr != nil {
		return errors.Join(err, encodeErr)
	}
	if b, encodeErr = sse.AppendEvent(nil, "", "", b); encodeErr != nil {
		return errors.Join(err, encodeErr)
	}
	st.write(b)
	return err
}

type follower = follow.Follower[*state]

// follow passes the states of a turn to a follower until it has enough or the turn can't be read. If only the turn is gone, the
// error wraps errTurnGone. With withoutText, a running turn's text is left out of its states.
//
// Callers that wait for a turn without streaming it use withoutText: otherwise each commit would copy the
// text of the whole turn for nothing. The text of the ended turn is always complete.
func (s *surface) follow(ctx context.Context, p gateway.Principal, conversation, turn string, withoutText bool, to follower) error {
	to.Read = func(ctx context.Context, f *gateway.Reader) (*state, int64, error) {
		current, err := readState(ctx, f.Feed, turn, withoutText)
		if err != nil {
			return nil, 0, err
		}
		current.cursor = current.position(f.Feed)
		return &current, current.seq, nil
	}
	err := to.Follow(ctx, s.gw, p, conversation)
	if errors.Is(err, errTurnGone) {
		// A deleted conversation loses its turns just before its feed reports the deletion.
		if _, deleted := s.gw.Conversation(ctx, p, gateway.ActionRead, conversation); deleted != nil {
			return deleted
		}
	}
	return err
}
