package recognition

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/internal/base/outbound"
	"github.com/leat-dev/leat/internal/voice"
)

const (
	// keepAliveGap is after how long without audio a frame is sent. Deepgram ends connections after 10 s without one.
	keepAliveGap = 4 * time.Second
	// pingGap is the time between two pings, and pingLimit how long the answer to one may take. They find a connection on which nothing
	// arrives any more.
	pingGap   = 15 * time.Second
	pingLimit = 10 * time.Second
	// finalizeLimit is how long the final text may take after the end of an utterance. Deepgram sends none if it had recognized
	// everything before.
	finalizeLimit = 1500 * time.Millisecond
	// endpointing is the pause after which Deepgram ends an utterance, in milliseconds.
	endpointing = 400
	// writeLimit limits the sending of a frame.
	writeLimit = 10 * time.Second
	// farewellLimit limits the end of a connection: the last message, and the wait until Deepgram has ended its side.
	farewellLimit = 500 * time.Millisecond
	// maxMessage limits a message of Deepgram, in bytes. The largest have each word of a long utterance.
	maxMessage = 1 << 20
)

// deepgram recognizes speech with the live socket of Deepgram, GET /v1/listen.
type deepgram struct {
	options Options
	http    *http.Client
}

var _ voice.Recognizer = (*deepgram)(nil)

// newDeepgram returns a recognizer for checked options.
func newDeepgram(o Options) (voice.Recognizer, error) {
	return &deepgram{options: o, http: outbound.NewForSockets(o.URL != "", o.times.answer)}, nil
}

// Close ends idle connections. Listeners must have been closed before.
func (d *deepgram) Close() error {
	d.http.CloseIdleConnections()
	return nil
}

// Listen implements [voice.Recognizer]. It returns when the connection is open.
func (d *deepgram) Listen(ctx context.Context, language string) (voice.Listener, error) {
	o := d.options
	language, err := o.languageOf(language)
	if err != nil {
		return nil, err
	}
	query := url.Values{
		"model": {o.Model}, "language": {cmp.Or(language, "multi")}, // multi is several languages at once
		"encoding": {"linear16"}, "sample_rate": {strconv.Itoa(voice.MicrophoneRate)}, "channels": {"1"},
		"punctuate": {"true"}, "interim_results": {"true"}, "endpointing": {strconv.Itoa(endpointing)},
	}
	header := http.Header{}
	if o.Key != "" {
		header.Set("Authorization", "Token "+o.Key)
	}
	// The language and the rate can't change on an open connection, so each listener has its own.
	dial, cancel := context.WithTimeout(ctx, o.times.answer)
	defer cancel()
	ws, resp, err := websocket.Dial(dial, o.base+"/v1/listen?"+query.Encode(), &websocket.DialOptions{HTTPClient: d.http, HTTPHeader: header})
	switch {
	case err == nil:
	case context.Cause(ctx) != nil:
		return nil, context.Cause(ctx)
	case resp != nil && resp.StatusCode != http.StatusSwitchingProtocols:
		return nil, voice.Refusal("recognition", o.Engine, o.Key, resp)
	case dial.Err() != nil:
		return nil, &voice.Failure{Service: "recognition", Engine: o.Engine, Reason: voice.Unavailable, Err: dial.Err()}
	default:
		return nil, &voice.Failure{Service: "recognition", Engine: o.Engine, Reason: voice.Unavailable, Err: outbound.Reason(err)}
	}
	ws.SetReadLimit(maxMessage)
	return newListener(ctx, func(l *listener) error { return d.listen(l, ws) }), nil
}

// failure returns why a connection has failed.
func (d *deepgram) failure(err error) error {
	if f, ok := errors.AsType[*voice.Failure](err); ok {
		return f
	}
	f := &voice.Failure{Service: "recognition", Engine: d.options.Engine, Reason: voice.Interrupted, Err: err}
	if c, ok := errors.AsType[websocket.CloseError](err); ok {
		f.Detail = voice.Detail(strconv.Itoa(int(c.Code))+" "+c.Reason, d.options.Key)
	}
	return f
}
