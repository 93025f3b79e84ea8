package speech

import (
	"cmp"
	"context"
	"io"

	"github.com/leat-dev/leat/internal/voice"
)

// openAI speaks with POST /audio/speech of OpenAI and servers that are compatible with it.
type openAI struct {
	*client
	options Options
}

var _ voice.Engine = (*openAI)(nil)

// openAIRequest is the body of a request. Fields that are not set are left out, because servers refuse those that their models don't have.
type openAIRequest struct {
	Model          string  `json:"model"`
	Input          string  `json:"input"`
	Voice          string  `json:"voice"`
	ResponseFormat string  `json:"response_format"`
	Speed          float64 `json:"speed,omitempty"`
	Instructions   string  `json:"instructions,omitempty"`
}

// newOpenAI returns an engine for checked options.
func newOpenAI(o Options) (voice.Engine, error) {
	c, err := newClient(o)
	if err != nil {
		return nil, err
	}
	return &openAI{c, o}, nil
}

// Speak implements [voice.Engine]. The API has no field for the language; its models find it in the text.
func (e *openAI) Speak(ctx context.Context, u voice.Utterance) (io.ReadCloser, error) {
	return e.speak(ctx, "/audio/speech", map[string]string{"Authorization": bearer(e.key)}, openAIRequest{
		Model: e.options.Model, Input: u.Text, Voice: cmp.Or(u.Voice, e.options.Voice), ResponseFormat: "pcm",
		Speed: e.options.Speed, Instructions: e.options.Instructions,
	})
}
