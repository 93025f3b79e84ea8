package recognition

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/voice"
)

// results is a message of Deepgram. Its type is Results, Error, or one that is ignored.
type results struct {
	Type string `json:"type"`
	// IsFinal says that the text of this segment doesn't change any more.
	IsFinal bool `json:"is_final"`
	// IsSpeechFinal says that a pause follows the segment.
	IsSpeechFinal bool `json:"speech_final"`
	// IsFromFinalize says that the message answers a Finalize.
	IsFromFinalize bool `json:"from_finalize"`
	Channel        struct {
		Alternatives []struct {
			Transcript string `json:"transcript"`
		} `json:"alternatives"`
	} `json:"channel"`
	// Description explains an error.
	Description string `json:"description"`
}

// utterance collects the segments of an utterance. It is pure.
type utterance struct {
	// text is that of the segments that don't change any more.
	text string
	// isAwaited says that its end was requested with a Finalize.
	isAwaited bool
}

// add returns the result of a message, and false if the message changes nothing.
func (u *utterance) add(m results) (voice.Result, bool) {
	segment := ""
	if len(m.Channel.Alternatives) > 0 {
		segment = strings.TrimSpace(m.Channel.Alternatives[0].Transcript)
	}
	text := strings.TrimSpace(u.text + " " + segment)
	if !m.IsFinal {
		return voice.Result{Text: text}, segment != ""
	}
	if u.text = text; m.IsSpeechFinal || m.IsFromFinalize {
		return u.end()
	}
	return voice.Result{Text: text}, segment != ""
}

// end returns the final result, and false if it would be empty and the caller doesn't wait for it.
func (u *utterance) end() (voice.Result, bool) {
	r := voice.Result{Text: u.text, IsFinal: true, IsEnd: u.isAwaited}
	ok := u.text != "" || u.isAwaited
	*u = utterance{}
	return r, ok
}

// listen exchanges audio and texts on a connection until it ends. Three more goroutines write, ping and read; they end
// with it.
func (d *deepgram) listen(l *listener, ws *websocket.Conn) error {
	ctx, cancel := context.WithCancelCause(l.ctx)
	endSent := make(chan struct{}, 1) // has an entry if the end of an utterance is about to be sent
	messages := make(chan results)
	limits := d.options.times
	var writer, reader sync.WaitGroup
	writer.Go(func() {
		err := write(ctx, l.queue, ws, endSent, limits.keepAlive)
		// If the service has closed the connection, the reader knows why.
		_ = retry.Sleep(ctx, farewellLimit)
		cancel(d.failure(err))
	})
	writer.Go(func() { cancel(ping(ctx, ws, limits.ping)) })
	reader.Go(func() { cancel(d.failure(receive(ctx, ws, messages))) })
	defer func() {
		writer.Wait()
		deadline := time.AfterFunc(farewellLimit, func() { _ = ws.CloseNow() }) // which ends the reader
		reader.Wait()
		deadline.Stop()
		_ = ws.CloseNow()
	}()

	var u utterance
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	await := func() {
		u.isAwaited = true
		timer.Reset(limits.finalize)
	}
	for {
		var r voice.Result
		ok := false
		select {
		case m := <-messages:
			select {
			case <-endSent: // it precedes the message that answers it
				await()
			default:
			}
			if r, ok = u.add(m); r.IsFinal {
				timer.Stop()
			}
		case <-endSent:
			await()
		case <-timer.C:
			r, ok = u.end()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if ok {
			l.emit(r)
		}
	}
}

// write sends the audio and the ends of utterances. At the end of ctx it tells Deepgram so. It returns why it ended.
func write(ctx context.Context, q *queue, ws *websocket.Conn, endSent chan<- struct{}, idle time.Duration) error {
	// The context of writes ends a moment after ctx, because a frame that is interrupted ends the connection without a farewell.
	writeCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(farewellLimit, stop) })()
	for {
		next, ok, err := q.take(ctx, idle)
		if err != nil {
			_ = send(writeCtx, ws, websocket.MessageText, []byte(`{"type":"CloseStream"}`)) // otherwise the end of the connection is enough
			return err
		}
		kind, frame := websocket.MessageBinary, next.audio
		switch {
		case !ok:
			kind, frame = websocket.MessageText, []byte(`{"type":"KeepAlive"}`)
		case next.isEnd:
			kind, frame = websocket.MessageText, []byte(`{"type":"Finalize"}`)
		}
		if next.isEnd {
			select {
			case endSent <- struct{}{}:
			default:
			}
		}
		if err := send(writeCtx, ws, kind, frame); err != nil {
			return err
		}
	}
}

// send sends a frame within the limit.
func send(ctx context.Context, ws *websocket.Conn, kind websocket.MessageType, frame []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	return ws.Write(ctx, kind, frame)
}

// ping checks the connection until it fails or ctx ends. It returns why it ended.
func ping(ctx context.Context, ws *websocket.Conn, gap time.Duration) error {
	for {
		if err := retry.Sleep(ctx, gap); err != nil {
			return err
		}
		limited, cancel := context.WithTimeout(ctx, min(gap, pingLimit))
		err := ws.Ping(limited)
		cancel()
		if err != nil {
			return &voice.Failure{Service: "recognition", Engine: "deepgram", Reason: voice.Unavailable, Err: fmt.Errorf("ping: %w", err)}
		}
	}
}

// receive passes on the texts that arrive. It returns why it ended.
func receive(ctx context.Context, ws *websocket.Conn, messages chan<- results) error {
	for {
		kind, raw, err := ws.Read(context.WithoutCancel(ctx)) // a context that ends would close the connection before the farewell
		if err != nil {
			return err
		}
		var m results
		if kind != websocket.MessageText || json.Unmarshal(raw, &m) != nil {
			return &voice.Failure{Service: "recognition", Engine: "deepgram", Reason: voice.Format, Detail: "a message is not JSON"}
		}
		switch m.Type {
		case "Error":
			return &voice.Failure{Service: "recognition", Engine: "deepgram", Reason: voice.Rejected, Detail: voice.Detail(m.Description, "")}
		case "Results":
			select {
			case messages <- m:
			case <-ctx.Done(): // the service finishes its side after the farewell
			}
		}
	}
}
