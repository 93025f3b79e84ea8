package speech

import (
	"cmp"
	"context"
	"io"
	"net/url"
	"strings"

	"github.com/leat-dev/leat/internal/voice"
)

// elevenLabs speaks with POST /v1/text-to-speech/{voice}/stream.
type elevenLabs struct {
	*client
	options Options
}

var _ voice.Engine = (*elevenLabs)(nil)

// elevenLabsRequest is the body of a request. The format is in the query.
type elevenLabsRequest struct {
	Text         string              `json:"text"`
	ModelID      string              `json:"model_id"`
	LanguageCode string              `json:"language_code,omitempty"`
	Settings     *elevenLabsSettings `json:"voice_settings,omitempty"`
}

// elevenLabsSettings replace those of the voice. They are left out if no speed is set, to keep the voice's own.
type elevenLabsSettings struct {
	Speed float64 `json:"speed"`
}

// newElevenLabs returns an engine for checked options.
func newElevenLabs(o Options) (voice.Engine, error) {
	c, err := newClient(o)
	if err != nil {
		return nil, err
	}
	return &elevenLabs{c, o}, nil
}

// Speak implements [voice.Engine].
func (e *elevenLabs) Speak(ctx context.Context, u voice.Utterance) (io.ReadCloser, error) {
	request := elevenLabsRequest{Text: u.Text, ModelID: e.options.Model}
	if strings.HasSuffix(request.ModelID, "_v2_5") { // the older models find the language themselves and refuse the field
		request.LanguageCode = language(u, e.options)
	}
	if e.options.Speed != 0 {
		request.Settings = &elevenLabsSettings{Speed: e.options.Speed}
	}
	path := "/v1/text-to-speech/" + url.PathEscape(cmp.Or(u.Voice, e.options.Voice)) + "/stream?output_format=pcm_24000"
	return e.speak(ctx, path, map[string]string{"xi-api-key": e.key}, request)
}
