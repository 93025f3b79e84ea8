// Stored answers, spoken on demand: the page's "Read aloud".

package voice

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/internal/voice"
	"github.com/leat-dev/leat/internal/voice/pcm"
	"github.com/leat-dev/leat/internal/voice/sentence"
	"github.com/leat-dev/leat/transcript"
)

const (
	// headerPieces is the header with the number of pieces of an answer. A client learns from the first response how
	// many pieces it has to fetch.
	headerPieces = "Leat-Speech-Pieces"
	// maxReading is the number of pieces that are made at a time, for all users. Each may be a process or a paid request.
	maxReading = 16
	// pieceTimeout is how long an engine may take for a piece. A piece is a few sentences, which engines make within seconds.
	pieceTimeout = time.Minute
	// maxPiece limits the audio of a piece in bytes, ten minutes. Only a faulty engine makes more.
	maxPiece = 10 * 60 * voice.SpeechRate * 2
)

// Reasons of refusals, in addition to those of package server.
const (
	reasonNoSpeech = "no_speech" // no engine is configured
	reasonNoText   = "no_text"   // the message has only what engines can't speak, such as emoji
	// reasonSpeech is sent if the engine failed or was too slow. Its error is in the gateway's log only.
	reasonSpeech = "speech_failed"
)

// Speech is the engine that reads answers aloud, and its defaults. If Engine is nil, requests are refused with the reason no_speech.
type Speech struct {
	Engine voice.Engine
	// Voice and Language are names that the engine knows. If Language is empty, the script of the text decides.
	Voice, Language string
}

// reader reads messages aloud. It is safe for concurrent use.
type reader struct {
	server  *server.Server
	gateway *gateway.Gateway
	speech  Speech
	slots   chan struct{} // one slot for each piece that is made
}

// RegisterSpeech adds the route that reads answers aloud.
func RegisterSpeech(s *server.Server, gw *gateway.Gateway, speech Speech) {
	r := &reader{server: s, gateway: gw, speech: speech, slots: make(chan struct{}, maxReading)}
	s.Handle(server.Route{
		Method: http.MethodGet, Pattern: "/api/conversations/{id}/messages/{message}/speech", Access: server.Authenticated, Handler: r.serve,
	})
}

// serve answers GET /api/conversations/{id}/messages/{message}/speech?piece=N: a piece of a message as WAV.
//
// A client fetches one piece while it plays the one before. So it can pause for any time, and a paid
// service makes only what the user listens to. A piece is complete before it is sent, so an engine that fails in its
// middle is an error of the request, and not audio that just ends. The message is looked up before the engine is
// checked, so that a user without access gets 404 in any case. The response isn't cached, because what a piece
// contains depends on the configured language and voice.
func (r *reader) serve(w http.ResponseWriter, req *http.Request, p gateway.Principal) error {
	n := 0
	if v := req.URL.Query().Get("piece"); v != "" {
		var err error
		if n, err = strconv.Atoi(v); err != nil || n < 0 {
			return server.Invalid("invalid piece %q: use 0 for the first one", v)
		}
	}
	text, err := r.text(req.Context(), p, req.PathValue("id"), req.PathValue("message"))
	if err != nil {
		return err
	}
	if r.speech.Engine == nil {
		return server.Errorf(http.StatusNotImplemented, reasonNoSpeech, "No speech engine is configured at this gateway")
	}
	units := divide(text, r.speech.Language)
	if len(units) == 0 {
		return server.Errorf(http.StatusUnprocessableEntity, reasonNoText, "This message has no text that can be read aloud")
	}
	if n >= len(units) {
		return server.Errorf(http.StatusNotFound, server.ReasonNotFound, "piece %d doesn't exist: the message has %d", n, len(units))
	}
	audio, err := r.speak(req.Context(), units[n])
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "audio/wav")
	h.Set("Content-Length", strconv.Itoa(len(audio)))
	h.Set("Cache-Control", "no-store")
	h.Set(headerPieces, strconv.Itoa(len(units)))
	_, err = w.Write(audio)
	return err
}

// text returns the visible text of a message that is complete. A message that isn't in memory any more is searched
// for in the log. Its pages are read backward, so an old message costs as many reads of the journal as there are
// pages after it.
//
// A message that is still being written is refused, since its pieces would change between two requests.
func (r *reader) text(ctx context.Context, p gateway.Principal, conversation, id string) (string, error) {
	f, err := r.gateway.Feed(ctx, p, conversation)
	if err != nil {
		return "", err
	}
	defer f.Release()
	var text string
	var exists, isFinal, earlier bool
	var before string
	f.View(func(t *transcript.Transcript) {
		if m := t.Message(id); m != nil {
			text, exists, isFinal = m.Visible(), true, m.Final
		} else if earlier = t.Earlier; earlier && len(t.Messages) > 0 {
			before = t.Messages[0].ID
		}
	})
	for !exists && earlier {
		page, err := f.Page(ctx, before, feed.MaxPage)
		if errors.Is(err, feed.ErrNoMessage) {
			break // the messages were removed meanwhile
		}
		if err != nil {
			return "", fmt.Errorf("voice: read messages: %w", err)
		}
		for _, m := range page.Messages {
			if m.ID == id {
				text, exists, isFinal = m.Visible(), true, m.Final
			}
		}
		before, earlier = page.FirstMessage(), page.Earlier
	}
	switch {
	case !exists:
		return "", server.Errorf(http.StatusNotFound, server.ReasonNotFound, "message %q doesn't exist", id)
	case !isFinal:
		return "", server.Errorf(http.StatusConflict, gateway.ReasonUnfinished, "The message isn't complete; try again when it is")
	}
	return text, nil
}

// divide divides a text into units to speak. The same text and language always give the same units, so requests for
// different pieces fit together without any state.
func divide(text, language string) []sentence.Unit {
	s := sentence.New(language)
	var units []sentence.Unit
	for _, u := range append(s.Write(text), s.Close()...) {
		if u.Text != "" {
			units = append(units, u)
		}
	}
	return units
}

// speak returns the audio of a unit as a WAV file. It doesn't wait for a slot: if all are in use, it returns 429 and
// asks for another attempt after a second. If the client disconnects, the engine is stopped.
func (r *reader) speak(ctx context.Context, u sentence.Unit) ([]byte, error) {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	default:
		return nil, &server.Error{Status: http.StatusTooManyRequests, Reason: server.ReasonBusy, Message: "Too many answers are read aloud right now; try again", RetryAfter: time.Second}
	}
	ctx, cancel := context.WithTimeout(ctx, pieceTimeout)
	defer cancel()
	samples, err := r.samples(ctx, voice.Utterance{Text: strings.TrimSpace(u.Text), Voice: r.speech.Voice, Language: u.Language})
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.DeadlineExceeded) {
			return nil, cause // the client has left, or the server stops
		}
		r.server.Log().Warn("an answer can't be read aloud", "error", err)
		return nil, server.Errorf(http.StatusBadGateway, reasonSpeech, "The speech engine failed; try again, or ask the operator")
	}
	return append(pcm.AppendHeader(nil, voice.SpeechRate, len(samples)), samples...), nil
}

// samples reads the whole audio of an utterance. It closes the audio, which also ends an engine that would make more
// than maxPiece.
func (r *reader) samples(ctx context.Context, u voice.Utterance) ([]byte, error) {
	audio, err := r.speech.Engine.Speak(ctx, u)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(audio, maxPiece+1))
	if err = errors.Join(err, audio.Close()); err != nil {
		return nil, err
	}
	if len(b) > maxPiece {
		return nil, fmt.Errorf("more than %d bytes of audio for %d characters", maxPiece, len(u.Text))
	}
	return b, nil
}
