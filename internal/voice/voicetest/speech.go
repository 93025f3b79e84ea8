package voicetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/leat-dev/leat/internal/voice"
)

// decode reads a JSON body into v, and refuses fields that v doesn't have.
func decode(r *http.Request, v any) error {
	if kind := r.Header.Get("Content-Type"); kind != "application/json" {
		return fmt.Errorf("content type %q", kind)
	}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// openAISpeech answers POST /v1/audio/speech.
func (s *Server) openAISpeech(w http.ResponseWriter, r *http.Request, f Fault) {
	var body struct {
		Model          string   `json:"model"`
		Input          string   `json:"input"`
		Voice          string   `json:"voice"`
		ResponseFormat string   `json:"response_format"`
		Speed          *float64 `json:"speed"`
		Instructions   string   `json:"instructions"`
	}
	err := decode(r, &body)
	request := Request{Service: "openai", Text: body.Input, Model: body.Model, Voice: body.Voice, Instructions: body.Instructions}
	if body.Speed != nil {
		request.Speed = *body.Speed
	}
	switch {
	case err != nil:
		s.wrong(w, "openai", "body: %v", err)
	case body.Model == "" || body.Voice == "" || body.Input == "" || len([]rune(body.Input)) > 4_096:
		s.wrong(w, "openai", "a required field is missing or too long: %+v", body)
	case body.ResponseFormat != "pcm":
		s.wrong(w, "openai", "response_format is %q", body.ResponseFormat)
	case body.Speed != nil && (*body.Speed < 0.25 || *body.Speed > 4):
		s.wrong(w, "openai", "speed is %v", *body.Speed)
	default:
		s.record(request)
		s.speak(w, r, f, "audio/pcm", body.Input)
	}
}

// elevenLabs answers POST /v1/text-to-speech/{voice}/stream.
func (s *Server) elevenLabs(w http.ResponseWriter, r *http.Request, f Fault) {
	var body struct {
		Text     string `json:"text"`
		ModelID  string `json:"model_id"`
		Language string `json:"language_code"`
		Settings *struct {
			Speed float64 `json:"speed"`
		} `json:"voice_settings"`
	}
	err := decode(r, &body)
	request := Request{Service: "elevenlabs", Text: body.Text, Model: body.ModelID, Language: body.Language, Voice: r.PathValue("voice")}
	if body.Settings != nil {
		request.Speed = body.Settings.Speed
	}
	switch {
	case err != nil:
		s.wrong(w, "elevenlabs", "body: %v", err)
	case r.URL.RawQuery != "output_format=pcm_24000":
		s.wrong(w, "elevenlabs", "query is %q", r.URL.RawQuery)
	case body.Text == "":
		s.wrong(w, "elevenlabs", "text is missing")
	case body.Language != "" && !strings.HasSuffix(body.ModelID, "_v2_5"):
		s.wrong(w, "elevenlabs", "the model %q takes no language_code", body.ModelID)
	case body.Settings != nil && (request.Speed < 0.7 || request.Speed > 1.2):
		s.wrong(w, "elevenlabs", "speed is %v", request.Speed)
	default:
		s.record(request)
		s.speak(w, r, f, "audio/mpeg", body.Text) // the documented content type of all formats
	}
}

// cartesia answers POST /tts/bytes.
func (s *Server) cartesia(w http.ResponseWriter, r *http.Request, f Fault) {
	var body struct {
		ModelID    string `json:"model_id"`
		Transcript string `json:"transcript"`
		Voice      struct {
			Mode string `json:"mode"`
			ID   string `json:"id"`
		} `json:"voice"`
		Format struct {
			Container string `json:"container"`
			Encoding  string `json:"encoding"`
			Rate      int    `json:"sample_rate"`
		} `json:"output_format"`
		Language   string `json:"language"`
		Generation *struct {
			Speed float64 `json:"speed"`
		} `json:"generation_config"`
	}
	err := decode(r, &body)
	request := Request{Service: "cartesia", Text: body.Transcript, Model: body.ModelID, Language: body.Language, Voice: body.Voice.ID}
	if body.Generation != nil {
		request.Speed = body.Generation.Speed
	}
	switch version := r.Header.Get("Cartesia-Version"); {
	case err != nil:
		s.wrong(w, "cartesia", "body: %v", err)
	case len(version) != len("2025-04-16") || strings.Count(version, "-") != 2:
		s.wrong(w, "cartesia", "Cartesia-Version is %q", version)
	case body.ModelID == "" || body.Transcript == "" || body.Voice.Mode != "id" || body.Voice.ID == "":
		s.wrong(w, "cartesia", "a required field is missing: %+v", body)
	case body.Format.Container != "raw" || body.Format.Encoding != "pcm_s16le" || body.Format.Rate != voice.SpeechRate:
		s.wrong(w, "cartesia", "output_format is %+v", body.Format)
	case body.Generation != nil && (request.Speed < 0.6 || request.Speed > 1.5):
		s.wrong(w, "cartesia", "speed is %v", request.Speed)
	default:
		s.record(request)
		s.speak(w, r, f, "application/octet-stream", body.Transcript)
	}
}

// deepgramSpeak answers POST /v1/speak.
func (s *Server) deepgramSpeak(w http.ResponseWriter, r *http.Request, f Fault) {
	var body struct {
		Text string `json:"text"`
	}
	err := decode(r, &body)
	q := r.URL.Query()
	switch {
	case err != nil:
		s.wrong(w, "deepgram", "body: %v", err)
	case body.Text == "" || len([]rune(body.Text)) > 2_000:
		s.wrong(w, "deepgram", "text is missing or too long")
	case q.Get("model") == "" || q.Get("encoding") != "linear16" || q.Get("sample_rate") != "24000" || q.Get("container") != "none" || len(q) != 4:
		s.wrong(w, "deepgram", "query is %q", r.URL.RawQuery)
	default:
		s.record(Request{Service: "deepgram", Text: body.Text, Model: q.Get("model")})
		s.speak(w, r, f, "audio/l16;rate=24000;channels=1", body.Text)
	}
}
