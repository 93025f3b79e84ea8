package speech

import (
	"cmp"
	"context"
	"io"
	"net/url"
	"strconv"

	"github.com/leat-dev/leat/internal/voice"
)

// deepgram speaks with POST /v1/speak. A model is a voice in one language.
type deepgram struct {
	*client
	options Options
}

var _ voice.Engine = (*deepgram)(nil)

// deepgramRequest is the body of a request. All options are in the query.
type deepgramRequest struct {
	Text string `json:"text"`
}

// newDeepgram returns an engine for checked options.
func newDeepgram(o Options) (voice.Engine, error) {
	c, err := newClient(o)
	if err != nil {
		return nil, err
	}
	return &deepgram{c, o}, nil
}

// Speak implements [voice.Engine].
func (e *deepgram) Speak(ctx context.Context, u voice.Utterance) (io.ReadCloser, error) {
	query := url.Values{
		"model":       {cmp.Or(u.Voice, e.options.Voice, e.options.Model)},
		"encoding":    {"linear16"},
		"sample_rate": {strconv.Itoa(voice.SpeechRate)},
		"container":   {"none"},
	}
	// A local server may need no key.
	authorization := ""
	if e.key != "" {
		authorization = "Token " + e.key
	}
	return e.speak(ctx, "/v1/speak?"+query.Encode(), map[string]string{"Authorization": authorization}, deepgramRequest{u.Text})
}
