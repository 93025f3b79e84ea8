package eliza

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/sse"
)

// headersWithin is how long a command may take before the headers go out without its result. Clients give up where they
// have none after 10 s; a failure before them can still be a plain HTTP error.
const headersWithin = 2 * time.Second

// sendStream adds a message and streams the turn that answers it.
func (s *surface) sendStream(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	body, c, err := readSend(r)
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	// Asked first, so that nothing is said where the answer could not be followed.
	leave, err := s.gw.AddViewer(p)
	if err != nil {
		return err
	}
	defer leave()
	type result struct {
		ack gateway.Ack
		err error
	}
	sent := make(chan result, 1) // this handler does not return before it was read
	go func() {
		ack, err := s.do(r.Context(), p, id, c)
		sent <- result{ack, err}
	}()
	var res result
	var st *stream
	soon := time.NewTimer(headersWithin)
	defer soon.Stop()
	select {
	case res = <-sent:
		if res.err != nil {
			return res.err
		}
		st = s.open(w, r)
	case <-soon.C:
		st = s.open(w, r)
		for waiting := true; waiting; {
			select {
			case res = <-sent:
				waiting = false
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

// attach goes on with the stream of the turn in which the client's last frame lies; without one, of the turn that runs.
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
		if errors.Is(err, errGone) {
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
	if st.out.Head() {
		return nil
	}
	st.render.tokens.unknown = last != ""
	st.render.tokens.deltas = r.URL.Query().Get("streamProtocol") == deltaV2
	return st.turn(r.Context(), p, id, turn)
}

// locate returns the turn that a stream is attached to, or errGone.
func locate(ctx context.Context, f *feed.Feed, last string) (string, error) {
	if last == "" {
		return found(running(f, false))
	}
	_, seq, ok := feed.Cursor(last).Parse()
	if !ok {
		return "", invalid("Last-Event-ID is not the id of a frame")
	}
	// Of another epoch or term nothing is known by number.
	if !f.Knows(feed.Cursor(last)) {
		return "", errGone
	}
	return turnAt(ctx, f, seq)
}

// stream is one response that streams a turn. It is used from one goroutine.
type stream struct {
	s      *surface
	out    *server.Stream
	render render
	ticker *time.Ticker
	buf    []byte
	seen   *server.Viewer
	gone   error // the client takes nothing more
}

// open sends the headers and the first heartbeat. The caller stops the ticker.
func (s *surface) open(w http.ResponseWriter, r *http.Request) *stream {
	st := &stream{s: s, ticker: time.NewTicker(s.heartbeat)}
	st.out, st.gone = s.srv.OpenStream(w, r, http.StatusOK, "text/event-stream")
	if !st.out.Head() {
		st.beat()
	}
	return st
}

func (st *stream) beat() { st.write(heartbeat) }

var heartbeat = sse.AppendComment(nil, "heartbeat")

func (st *stream) write(b []byte) {
	if st.gone == nil && len(b) > 0 {
		st.gone = st.out.Write(b)
	}
}

// turn streams a turn to its end. When the server closes it stops without a last frame: the turn may go on, and the
// client attaches again.
func (st *stream) turn(ctx context.Context, p gateway.Principal, conversation, turn string) error {
	st.seen = st.s.viewers.Open()
	defer st.seen.Close()
	if st.render.tokens.unknown {
		st.seen.Resumed()
	}
	end := int64(0)
	err := st.s.follow(ctx, p, conversation, turn, false, follower{
		State: func(s *state) (over bool, err error) {
			if st.buf, over, err = st.render.next(st.buf[:0], s); err != nil {
				return true, err
			}
			if st.write(st.buf); len(st.buf) > 0 {
				st.seen.Frame(len(st.buf))
			}
			if over {
				end = s.turn.EndSeq
			}
			return over, st.gone
		},
		Tick: func() error { st.beat(); return st.gone }, Ticks: st.ticker.C,
	})
	if ctx.Err() != nil || st.gone != nil || server.Restarting(err) {
		return nil // nobody is there to be told, or nothing that a person should read
	}
	if end > 0 && err == nil {
		st.s.shown(ctx, p, conversation, end)
	}
	return st.fail(err)
}

// fail ends a stream that has begun with an error frame, in words for people. It returns what is for the log.
func (st *stream) fail(err error) error {
	if err == nil {
		return nil
	}
	err = words(err)
	e := server.Describe(err)
	f := failure{Type: "error", UserMessageID: st.render.user, Message: e.Message, Reason: e.Reason, Retryable: e.RetryAfter > 0, RetryAfter: e.RetryAfter.Milliseconds()}
	b, encoding := encode(f)
	if encoding != nil {
		return errors.Join(err, encoding)
	}
	if b, encoding = sse.AppendEvent(nil, "", "", b); encoding != nil {
		return errors.Join(err, encoding)
	}
	st.write(b)
	return err
}
