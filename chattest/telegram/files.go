package telegram

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

const (
	// maxDownload is the largest file that bots can download, and maxUpload the largest that they can send, in bytes.
	maxDownload = 20 << 20
	maxUpload   = 50 << 20
)

// SendFile sends a file as a person does, with a caption that may be empty, and returns the number of the message. Several files
// with the same album, which isn't empty, are one message for people.
func (s *Server) SendFile(w Writer, f File, caption, album string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.add(&Message{Chat: w.Chat, Thread: w.Thread, Text: caption, Files: []File{f}})
	object := s.object(m)
	delete(object, "text")
	object["from"] = map[string]any{"id": w.ID, "is_bot": false, "first_name": w.Name}
	if caption != "" {
		object["caption"] = caption
	}
	if album != "" {
		object["media_group_id"] = album
	}
	s.files = append(s.files, f)
	file := map[string]any{"file_id": fmt.Sprint("file", len(s.files)), "file_size": len(f.Content)}
	switch {
	case f.IsVoice:
		file["mime_type"], file["duration"] = "audio/ogg", 1
		object["voice"] = file
	case f.IsPhoto:
		small := map[string]any{"file_id": "small", "file_size": 1}
		object["photo"] = []any{small, file}
	default:
		file["file_name"], file["mime_type"] = f.Name, f.Type
		object["document"] = file
	}
	s.notify("message", object)
	return m.ID
}

// file returns a file by its id. mu must be locked.
func (s *Server) file(id string) *File {
	number, _ := strings.CutPrefix(id, "file")
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(s.files) {
		return nil
	}
	return &s.files[n-1]
}

// getFile returns the path of a file for a download. A file that is too big has none.
func (c *call) getFile() (any, *failure) {
	id := c.text("file_id")
	switch f := c.s.file(id); {
	case f == nil:
		return nil, badRequest("invalid file_id")
	case len(f.Content) > maxDownload:
		return nil, badRequest("file is too big")
	default:
		return map[string]any{"file_id": id, "file_path": "documents/" + id, "file_size": len(f.Content)}, nil
	}
}

// download answers a request for the bytes of a file.
func (s *Server) download(w http.ResponseWriter, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.file(strings.TrimPrefix(name, "documents/"))
	if f == nil {
		write(w, nil, refuse(http.StatusNotFound, "Not Found"))
		return
	}
	_, _ = w.Write(f.Content) // the client has gone
}

// sendFile carries out sendPhoto, sendDocument and sendVoice with an uploaded file.
func (c *call) sendFile(o *chat) (any, *failure) {
	field := strings.ToLower(strings.TrimPrefix(c.method, "send"))
	if c.form == nil || len(c.form.File[field]) != 1 {
		return nil, badRequest("there is no %s in the request", field)
	}
	header := c.form.File[field][0]
	part, err := header.Open()
	if err != nil {
		return nil, badRequest("can't read the file: %v", err)
	}
	defer part.Close()
	content, err := io.ReadAll(io.LimitReader(part, maxUpload+1))
	switch {
	case err != nil:
		return nil, badRequest("can't read the file: %v", err)
	case len(content) > maxUpload:
		return nil, refuse(http.StatusRequestEntityTooLarge, "Request Entity Too Large")
	case len(content) == 0:
		return nil, badRequest("file must be non-empty")
	}
	if kind := http.DetectContentType(content); field == "photo" && !strings.HasPrefix(kind, "image/") {
		return nil, badRequest("IMAGE_PROCESS_FAILED")
	}
	// The real API takes MP3 and M4A as well, which no bot under test sends.
	if field == "voice" && !bytes.HasPrefix(content, []byte("OggS")) {
		return nil, badRequest("can't use file of type as VoiceMessage: it isn't OGG")
	}
	if field == "voice" && o.noVoice {
		return nil, badRequest("VOICE_MESSAGES_FORBIDDEN")
	}
	if failed := c.pace(o); failed != nil {
		return nil, failed
	}
	m := c.s.add(&Message{
		Chat: c.int("chat_id"), Thread: c.int("message_thread_id"), Bot: true, Text: c.text("caption"),
		Files: []File{{Name: header.Filename, Content: content, IsPhoto: field == "photo", IsVoice: field == "voice"}},
	})
	delete(o.drafts, m.Thread)
	return c.s.object(m), nil
}
