package speech

import (
	"cmp"
	"context"
	"io"

	"github.com/leat-dev/leat/internal/voice"
)

// cartesiaVersion is the version of the API, which every request has to name.
const cartesiaVersion = "2025-04-16"

// cartesia speaks with POST /tts/bytes.
type cartesia struct {
	*client
	options Options
}

var _ voice.Engine = (*cartesia)(nil)

// cartesiaRequest is the body of a request. Without a language the model takes English.
type cartesiaRequest struct {
	ModelID      string              `json:"model_id"`
	Transcript   string              `json:"transcript"`
	Voice        cartesiaVoice       `json:"voice"`
	OutputFormat cartesiaFormat      `json:"output_format"`
	Language     string              `json:"language,omitempty"`
	Generation   *cartesiaGeneration `json:"generation_config,omitempty"`
}

// cartesiaVoice names a voice. The only mode for existing voices is "id".
type cartesiaVoice struct {
	Mode string `json:"mode"`
	ID   string `json:"id"`
}

// cartesiaFormat asks for raw samples, so that the answer needs no decoding.
type cartesiaFormat struct {
	Container  string `json:"container"`
	Encoding   string `json:"encoding"`
	SampleRate int    `json:"sample_rate"`
}

// cartesiaGeneration has the options of the models since sonic-3. Older ones ignore it.
type cartesiaGeneration struct {
	Speed float64 `json:"speed"`
}

// newCartesia returns an engine for checked options.
func newCartesia(o Options) (voice.Engine, error) {
	c, err := newClient(o)
	if err != nil {
		return nil, err
	}
	return &cartesia{c, o}, nil
}

// Speak implements [voice.Engine].
func (e *cartesia) Speak(ctx context.Context, u voice.Utterance) (io.ReadCloser, error) {
	request := cartesiaRequest{
		ModelID: e.options.Model, Transcript: u.Text, Language: language(u, e.options),
		Voice:        cartesiaVoice{Mode: "id", ID: cmp.Or(u.Voice, e.options.Voice)},
		OutputFormat: cartesiaFormat{Container: "raw", Encoding: "pcm_s16le", SampleRate: voice.SpeechRate},
	}
	if e.options.Speed != 0 {
		request.Generation = &cartesiaGeneration{Speed: e.options.Speed}
	}
	return e.speak(ctx, "/tts/bytes", map[string]string{"Authorization": bearer(e.key), "Cartesia-Version": cartesiaVersion}, request)
}
