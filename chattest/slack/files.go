package slack

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/leat-dev/leat/chattest/internal/memory"
)

// The paths of uploads and downloads, which are outside of the Web API.
const (
	uploadPath   = "/upload/v1/"
	downloadPath = "/files-pri/"
)

// upload is a file, from the request for an address on.
type upload struct {
	// The id can be used for the completion once.
	id string
	// length is the announced one. Other bytes are refused.
	length int
	title  string
	File
	base    string   // the address of the server, as the client called it
	isSent  bool     // its bytes have arrived
	message *Message // that shows it, or nil
}

// object returns a file as the API does.
func (f *upload) object() map[string]any {
	path := downloadPath + team + "-" + f.id
	return map[string]any{
		"id": f.id, "name": f.Name, "title": f.title, "mimetype": f.Type, "size": len(f.Content), "mode": "hosted",
		"url_private": f.base + path + "/" + f.Name, "url_private_download": f.base + path + "/download/" + f.Name,
	}
}

// file returns a file by its id, or nil. mu must be locked.
func (s *Server) file(id string) *upload {
	for _, f := range s.files {
		if f.id == id {
			return f
		}
	}
	return nil
}

// newFile makes a file. mu must be locked.
func (s *Server) newFile(base string) *upload {
	f := &upload{id: fmt.Sprint("F", len(s.files)+1), base: base}
	s.files = append(s.files, f)
	return f
}

// getUploadURL announces a file. Its length is binding.
func (c *call) getUploadURL() *answer {
	name, length := c.text("filename"), c.int("length")
	if name == "" || length <= 0 {
		return refuse("invalid_arguments")
	}
	f := c.s.newFile(address(c.r, "http", ""))
	f.Name, f.title, f.length = name, name, length
	return accept(map[string]any{"upload_url": f.base + uploadPath + f.id, "file_id": f.id})
}

// upload answers a request that sends the bytes of a file, as they are or as a form.
func (s *Server) upload(w http.ResponseWriter, r *http.Request, id string) {
	s.mu.Lock()
	fault := s.fault("upload", "")
	s.mu.Unlock()
	if fault != nil && (!memory.WaitForRelease(r.Context(), fault.Release) || fault.Before || fault.After) {
		panic(http.ErrAbortHandler)
	}
	if fault != nil {
		if a := fault.answer(); a != nil {
			a.write(w)
			return
		}
	}
	body := io.Reader(r.Body)
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		form, err := r.MultipartReader()
		if err != nil {
			http.Error(w, "bad form", http.StatusBadRequest)
			return
		}
		part, err := form.NextPart()
		if err != nil {
			http.Error(w, "bad form", http.StatusBadRequest)
			return
		}
		body = part
	}
	content, err := io.ReadAll(body)
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.file(id)
	if err != nil || f == nil || f.isSent || len(content) != f.length {
		http.Error(w, "bad upload", http.StatusBadRequest)
		return
	}
	f.Content, f.Type, f.isSent = content, http.DetectContentType(content), true
	_, _ = fmt.Fprintf(w, "OK - %d", len(content)) // the client has gone
}

// completeUpload makes uploaded files visible: in a channel as one message, or to the bot only. Each file can be completed once.
// The answer doesn't have the id of the message.
func (c *call) completeUpload() *answer {
	var list []struct {
		ID    string `json:"id"`
		Title string `json:"title"`
	}
	if c.object("files", &list) != nil || len(list) == 0 {
		return refuse("invalid_arguments")
	}
	objects := []map[string]any{}
	for _, n := range list {
		f := c.s.file(n.ID)
		if f == nil || !f.isSent || f.message != nil {
			return refuse("file_not_found")
		}
		if n.Title != "" {
			f.title = n.Title
		}
		objects = append(objects, f.object())
	}
	if c.channel == "" { // the files stay private
		return accept(map[string]any{"files": objects})
	}
	if refusal := c.enter(); refusal != nil {
		return refusal
	}
	thread, refusal := c.thread()
	if refusal != nil {
		return refusal
	}
	if refusal := c.pace(); refusal != nil {
		return refusal
	}
	m := c.s.add(&Message{Channel: c.channel, Thread: thread, User: c.s.opt.BotUser, Bot: true, Text: c.text("initial_comment")})
	for _, n := range list {
		f := c.s.file(n.ID)
		f.message = m
		m.Files = append(m.Files, f.File)
	}
	return accept(map[string]any{"files": objects})
}

// download answers a request for the bytes of a file. Without the token it is redirected to the page for signing in.
func (s *Server) download(w http.ResponseWriter, r *http.Request, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, _, _ := strings.Cut(strings.TrimPrefix(path, team+"-"), "/")
	f := s.file(id)
	switch {
	case r.Header.Get("Authorization") != "Bearer "+s.opt.Token:
		http.Redirect(w, r, "/?redir="+r.URL.Path, http.StatusFound)
	case f == nil || f.message == nil || f.message.Deleted:
		http.NotFound(w, r)
	default:
		w.Header().Set("Content-Type", f.Type)
		_, _ = w.Write(f.Content) // the client has gone
	}
}
