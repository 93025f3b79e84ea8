package voicetest

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// recorder is a test whose failures are collected.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	failures []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	failures := r.failures
	r.failures = nil
	return failures
}

// Requests that the services would refuse fail the test of the caller.
func TestStrict(t *testing.T) {
	rec := &recorder{TB: t}
	s := NewServer(rec)
	const speech = `{"model":"m","input":"x","voice":"v","response_format":"pcm"}`
	const cartesia = `{"model_id":"m","transcript":"x","voice":{"mode":"id","id":"v"},"output_format":{"container":"raw","encoding":"pcm_s16le","sample_rate":24000}}`
	form := func(fields string) string { return strings.ReplaceAll(fields, "\n", "\r\n") }
	header := func(pairs ...string) map[string]string {
		m := map[string]string{"Content-Type": "application/json", "Authorization": "Bearer " + Key}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	token := header("Authorization", "Token "+Key)
	for name, c := range map[string]struct {
		path, body string
		header     map[string]string
		status     int
		failure    string
	}{
		"good":             {"/v1/audio/speech", speech, header(), 200, ""},
		"wrong path":       {"/audio/speech", speech, header(), 404, "unknown address"},
		"wrong key":        {"/v1/audio/speech", speech, header("Authorization", "Bearer x"), 401, ""},
		"no scheme":        {"/v1/audio/speech", speech, header("Authorization", Key), 401, ""},
		"wrong scheme":     {"/v1/speak", `{"text":"x"}`, header(), 401, ""},
		"wrong type":       {"/v1/audio/speech", speech, header("Content-Type", "text/plain"), 400, "content type"},
		"unknown field":    {"/v1/audio/speech", strings.Replace(speech, "{", `{"stream":true,`, 1), header(), 400, `unknown field "stream"`},
		"MP3":              {"/v1/audio/speech", strings.Replace(speech, "pcm", "mp3", 1), header(), 400, "response_format"},
		"too fast":         {"/v1/audio/speech", strings.Replace(speech, "{", `{"speed":5,`, 1), header(), 400, "speed"},
		"no voice":         {"/v1/audio/speech", strings.Replace(speech, `"v"`, `""`, 1), header(), 400, "missing"},
		"ElevenLabs":       {"/v1/text-to-speech/v/stream?output_format=pcm_24000", `{"text":"x","model_id":"m"}`, header("xi-api-key", Key), 200, ""},
		"other rate":       {"/v1/text-to-speech/v/stream?output_format=pcm_16000", `{"text":"x"}`, header("xi-api-key", Key), 400, "query"},
		"language":         {"/v1/text-to-speech/v/stream?output_format=pcm_24000", `{"text":"x","model_id":"m","language_code":"de"}`, header("xi-api-key", Key), 400, "language_code"},
		"Cartesia":         {"/tts/bytes", cartesia, header("Cartesia-Version", "2025-04-16"), 200, ""},
		"no version":       {"/tts/bytes", cartesia, header(), 400, "Cartesia-Version"},
		"float samples":    {"/tts/bytes", strings.Replace(cartesia, "s16le", "f32le", 1), header("Cartesia-Version", "2025-04-16"), 400, "output_format"},
		"Deepgram":         {"/v1/speak?model=m&encoding=linear16&sample_rate=24000&container=none", `{"text":"x"}`, token, 200, ""},
		"container":        {"/v1/speak?model=m&encoding=linear16&sample_rate=24000", `{"text":"x"}`, token, 400, "query"},
		"no form":          {"/v1/audio/transcriptions", "{}", header(), 400, "body"},
		"no file":          {"/v1/audio/transcriptions", form("--b\nContent-Disposition: form-data; name=\"model\"\n\nm\n--b--\n"), header("Content-Type", "multipart/form-data; boundary=b"), 400, "missing"},
		"other file":       {"/v1/audio/transcriptions", form("--b\nContent-Disposition: form-data; name=\"file\"; filename=\"a.mp3\"\n\nm\n--b--\n"), header("Content-Type", "multipart/form-data; boundary=b"), 400, "name is"},
		"no WAV":           {"/v1/audio/transcriptions", form("--b\nContent-Disposition: form-data; name=\"file\"; filename=\"speech.wav\"\n\nm\n--b--\n"), header("Content-Type", "multipart/form-data; boundary=b"), 400, "WAV header"},
		"not a web socket": {"/v1/listen", "", token, 405, ""},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		for key, value := range c.header {
			req.Header.Set(key, value)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		got := strings.Join(rec.take(), "\n")
		if resp.StatusCode != c.status && c.path != "/v1/listen" || (c.failure == "") != (got == "") && c.path != "/v1/listen" || !strings.Contains(got, c.failure) {
			t.Errorf("%s: status %d, failures %q; want %d, %q", name, resp.StatusCode, got, c.status, c.failure)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
