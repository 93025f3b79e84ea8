package speech

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/internal/voice"
)

// openAIRequest is the body of a request. Fields that are not set are left out, because servers refuse those that their models don't have.
type openAIRequest struct {
	Model          string  `json:"model"`
	Input          string  `json:"input"`
	Voice          string  `json:"voice"`
	ResponseFormat string  `json:"response_format"`
	Speed          float64 `json:"speed,omitempty"`
	Instructions   string  `json:"instructions,omitempty"`
}

// openAI speaks with POST /audio/speech of OpenAI and servers that are compatible with it. The API has no field for the language; its models
// find it in the text.
func openAI(o Options, u voice.Utterance) request {
	return request{path: "/audio/speech", header: map[string]string{"Authorization": bearer(o.Key)}, body: openAIRequest{
		Model: o.Model, Input: u.Text, Voice: cmp.Or(u.Voice, o.Voice), ResponseFormat: "pcm",
		Speed: o.Speed, Instructions: o.Instructions,
	}}
}

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

// elevenLabs speaks with POST /v1/text-to-speech/{voice}/stream.
func elevenLabs(o Options, u voice.Utterance) request {
	body := elevenLabsRequest{Text: u.Text, ModelID: o.Model}
	if strings.HasSuffix(body.ModelID, "_v2_5") { // the older models find the language themselves and refuse the field
		body.LanguageCode = voice.PrimaryLanguage(cmp.Or(u.Language, o.Language))
	}
	if o.Speed != 0 {
		body.Settings = &elevenLabsSettings{Speed: o.Speed}
	}
	path := "/v1/text-to-speech/" + url.PathEscape(cmp.Or(u.Voice, o.Voice)) + "/stream?output_format=pcm_24000"
	return request{path, map[string]string{"xi-api-key": o.Key}, body}
}

// cartesiaVersion is the version of the API, which every request has to name.
const cartesiaVersion = "2025-04-16"

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

// cartesia speaks with POST /tts/bytes.
func cartesia(o Options, u voice.Utterance) request {
	body := cartesiaRequest{
		ModelID: o.Model, Transcript: u.Text, Language: voice.PrimaryLanguage(cmp.Or(u.Language, o.Language)),
		Voice:        cartesiaVoice{Mode: "id", ID: cmp.Or(u.Voice, o.Voice)},
		OutputFormat: cartesiaFormat{Container: "raw", Encoding: "pcm_s16le", SampleRate: voice.SpeechRate},
	}
	if o.Speed != 0 {
		body.Generation = &cartesiaGeneration{Speed: o.Speed}
	}
	return request{"/tts/bytes", map[string]string{"Authorization": bearer(o.Key), "Cartesia-Version": cartesiaVersion}, body}
}

// deepgramRequest is the body of a request. All options are in the query.
type deepgramRequest struct {
	Text string `json:"text"`
}

// deepgram speaks with POST /v1/speak. A model is a voice in one language.
func deepgram(o Options, u voice.Utterance) request {
	query := url.Values{
		"model":       {cmp.Or(u.Voice, o.Voice, o.Model)},
		"encoding":    {"linear16"},
		"sample_rate": {strconv.Itoa(voice.SpeechRate)},
		"container":   {"none"},
	}
	// A local server may need no key.
	authorization := ""
	if o.Key != "" {
		authorization = "Token " + o.Key
	}
	return request{"/v1/speak?" + query.Encode(), map[string]string{"Authorization": authorization}, deepgramRequest{u.Text}}
}
