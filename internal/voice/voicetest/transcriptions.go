package voicetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/voice"
	"github.com/leat-dev/leat/internal/voice/pcm"
)

// Transcript is the text that the fake recognizers return for a number of samples.
func Transcript(samples int) string { return fmt.Sprintf("%d samples", samples) }

// transcriptions answers POST /v1/audio/transcriptions.
func (s *Server) transcriptions(w http.ResponseWriter, r *http.Request, f Fault) {
	form, err := r.MultipartReader()
	if err != nil {
		s.wrong(w, "openai", "body: %v", err)
		return
	}
	request := Request{Service: "openai"}
	fields := map[string]string{}
	for {
		part, err := form.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil { // the client has gone
			return
		}
		if err := s.field(part, fields, &request); err != nil {
			s.wrong(w, "openai", "%v", err)
			return
		}
	}
	if fields["model"] == "" || fields["response_format"] != "json" || request.Audio == nil {
		s.wrong(w, "openai", "a required field is missing: %v", fields)
		return
	}
	request.Model, request.Language = fields["model"], fields["language"]
	s.record(request)
	body, err := json.Marshal(map[string]string{"text": Transcript(len(request.Audio) / 2)})
	if err != nil {
		panic(err) // can't happen: it is a text
	}
	if f.Body != "" {
		body = []byte(f.Body)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	if !f.Stall && !f.Reset {
		_, _ = w.Write(body)
		return
	}
	_, _ = w.Write(body[:min(f.After, len(body))])
	_ = http.NewResponseController(w).Flush()
	if f.Reset {
		panic(http.ErrAbortHandler)
	}
	s.wait(r, time.Hour)
}

// field reads a field of the form.
func (s *Server) field(part *multipart.Part, fields map[string]string, request *Request) error {
	name := part.FormName()
	content, err := io.ReadAll(part)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	switch name {
	case "model", "language", "response_format", "prompt", "temperature":
		fields[name] = string(content)
		return nil
	case "file":
	default:
		return fmt.Errorf("unknown field %q", name)
	}
	if part.FileName() != "speech.wav" { // the service takes the format from the name
		return fmt.Errorf("the file's name is %q", part.FileName())
	}
	src := bytes.NewReader(content)
	h, err := pcm.ReadHeader(src)
	if err != nil {
		return fmt.Errorf("file: %w", err)
	}
	if h.Rate != voice.MicrophoneRate || h.Size != int64(src.Len()) || h.Size%2 != 0 {
		return fmt.Errorf("file: %+v with %d bytes", h, src.Len())
	}
	request.Audio = content[len(content)-src.Len():]
	return nil
}
