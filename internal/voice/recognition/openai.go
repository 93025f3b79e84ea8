package recognition

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"

	"github.com/leat-dev/leat/internal/base/outbound"
	"github.com/leat-dev/leat/internal/voice"
	"github.com/leat-dev/leat/internal/voice/pcm"
)

const (
	// minUtterance is the shortest audio that is sent, in bytes: 100 ms. OpenAI refuses shorter ones.
	minUtterance = bytesPerSecond / 10
	// minLoudness is the root mean square below which 20 ms are silence: -54 dB. An utterance of silence isn't sent, because the models
	// invent words for it.
	minLoudness = 65
	// maxText limits a response, in bytes.
	maxText = 1 << 20
)

// openAI recognizes whole utterances with POST /audio/transcriptions of OpenAI and servers that are compatible with it.
type openAI struct {
	options Options
	http    *http.Client
}

var _ voice.Recognizer = (*openAI)(nil)

// newOpenAI returns a recognizer for checked options.
func newOpenAI(o Options) (voice.Recognizer, error) {
	return &openAI{options: o, http: outbound.New(outbound.Options{AllowPrivate: o.URL != "", Timeout: o.times.answer, MaxBody: maxText})}, nil
}

// Close ends idle connections. Listeners must have been closed before.
func (r *openAI) Close() error {
	r.http.CloseIdleConnections()
	return nil
}

// Listen implements [voice.Recognizer]. It makes no request before the end of an utterance.
func (r *openAI) Listen(ctx context.Context, language string) (voice.Listener, error) {
	language, err := r.options.languageOf(language)
	if err != nil {
		return nil, err
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return newListener(ctx, func(l *listener) error { return r.listen(l, voice.PrimaryLanguage(language)) }), nil
}

// listen collects utterances and transcribes one after the other.
func (r *openAI) listen(l *listener, language string) error {
	var audio []byte
	for {
		next, _, err := l.queue.take(l.ctx, 0)
		if err != nil {
			return err
		}
		audio = append(audio, next.audio...)
		if !next.isEnd && len(audio) < maxUtteranceBytes {
			continue
		}
		text := ""
		if len(audio) >= minUtterance && !isSilent(audio) {
			if text, err = r.transcribe(l.ctx, audio, language); err != nil {
				return err
			}
		}
		l.emit(voice.Result{Text: text, IsFinal: true, IsEnd: next.isEnd})
		audio = audio[:0]
	}
}

// isSilent reports whether no 20 ms of the audio are loud enough for speech.
func isSilent(audio []byte) bool {
	const window = bytesPerSecond / 50
	for ; len(audio) > 0; audio = audio[min(window, len(audio)):] {
		sum := 0.0
		part := audio[:min(window, len(audio))]
		for i := 0; i+1 < len(part); i += 2 {
			x := float64(int16(binary.LittleEndian.Uint16(part[i:])))
			sum += x * x
		}
		if sum > minLoudness*minLoudness*float64(len(part)/2) {
			return false
		}
	}
	return true
}

// transcribe returns the text of an utterance.
func (r *openAI) transcribe(ctx context.Context, audio []byte, language string) (string, error) {
	body, contentType := form(r.options.Model, language, audio)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.options.base+"/audio/transcriptions", bytes.NewReader(body))
	if err != nil {
		return "", fmt.Errorf("recognition: %s: invalid request", r.options.Engine) // the error contains the URL
	}
	req.Header.Set("Content-Type", contentType)
	if r.options.Key != "" {
		req.Header.Set("Authorization", "Bearer "+r.options.Key)
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return "", &voice.Failure{Service: "recognition", Engine: r.options.Engine, Reason: voice.Unavailable, Err: outbound.Reason(err)}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", voice.Refusal("recognition", r.options.Engine, r.options.Key, resp)
	}
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", &voice.Failure{Service: "recognition", Engine: r.options.Engine, Reason: voice.Interrupted, Err: err}
	}
	var answer struct {
		Text *string `json:"text"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil || answer.Text == nil {
		return "", &voice.Failure{Service: "recognition", Engine: r.options.Engine, Reason: voice.Format, Status: resp.StatusCode, Detail: "the response has no text"}
	}
	return strings.TrimSpace(*answer.Text), nil
}

// form returns the body of a request and its content type. Writing to memory can't fail.
func form(model, language string, audio []byte) (body []byte, contentType string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.WriteField("model", model)
	_ = w.WriteField("response_format", "json")
	if language != "" {
		_ = w.WriteField("language", language)
	}
	part, _ := w.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {`form-data; name="file"; filename="speech.wav"`}, "Content-Type": {"audio/wav"},
	})
	_, _ = part.Write(pcm.AppendHeader(nil, voice.MicrophoneRate, len(audio)))
	_, _ = part.Write(audio)
	_ = w.Close()
	return b.Bytes(), w.FormDataContentType()
}
