package discord

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
)

const (
	// maxUpload limits the file of a request, in bytes.
	maxUpload = 10 << 20
	maxFiles  = 10
	// addressLife is how long the address of a file is valid.
	addressLife = 24 * time.Hour
)

// File is a file in a message.
type File struct {
	ID      string
	Name    string
	Type    string // media type
	Content []byte
}

// uploads returns the files of a multipart request.
func (c *call) uploads() ([]File, *refusal) {
	if c.form == nil {
		return nil, nil
	}
	var form struct {
		Attachments []struct {
			ID       json.RawMessage `json:"id"`
			Filename string          `json:"filename"`
		} `json:"attachments"`
	}
	if len(c.raw) > 0 {
		if err := json.Unmarshal(c.raw, &form); err != nil {
			return nil, invalid("attachments", "BASE_TYPE_LIST", "The attachments are malformed.")
		}
	}
	var list []File
	for i := range maxFiles + 1 {
		headers := c.form.File[fmt.Sprintf("files[%d]", i)]
		// A single file may have the plain name, which some libraries use.
		if len(headers) == 0 && i == 0 {
			headers = c.form.File["file"]
		}
		if len(headers) == 0 {
			continue
		}
		if len(list) == maxFiles {
			return nil, invalid("attachments", "BASE_TYPE_MAX_LENGTH", "Must be 10 or fewer in length.")
		}
		h := headers[0]
		if h.Size > maxUpload {
			return nil, refuse(http.StatusRequestEntityTooLarge, 40005, "Request entity too large")
		}
		r, err := h.Open()
		if err != nil {
			return nil, refuse(http.StatusBadRequest, 50046, "Invalid file uploaded")
		}
		content, err := io.ReadAll(r)
		_ = r.Close()
		if err != nil {
			return nil, refuse(http.StatusBadRequest, 50046, "Invalid file uploaded")
		}
		f := File{ID: c.s.nextID(), Name: path.Base(h.Filename), Type: h.Header.Get("Content-Type"), Content: content}
		for _, a := range form.Attachments {
			if strings.Trim(string(a.ID), `"`) == strconv.Itoa(i) && a.Filename != "" {
				f.Name = a.Filename
			}
		}
		list = append(list, f)
	}
	return list, nil
}

// attachments returns the files of a message as the API does, with addresses that expire. mu must be locked.
func (s *Server) attachments(m *Message) []any {
	list := []any{}
	for _, f := range m.Files {
		name := "/attachments/" + m.Channel + "/" + f.ID + "/" + f.Name
		s.files[name] = f
		list = append(list, map[string]any{
			"id": f.ID, "filename": f.Name, "content_type": f.Type, "size": len(f.Content),
			"url": fmt.Sprintf("%s%s?ex=%x", s.base, name, time.Now().Add(addressLife).Unix()),
		})
	}
	return list
}

// download answers a request for the bytes of a file, which needs no token.
func (s *Server) download(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.files[r.URL.Path]
	ends, err := strconv.ParseInt(r.URL.Query().Get("ex"), 16, 64)
	if r.Header.Get("Authorization") != "" {
		s.violate("the token was sent with the download of a file")
	}
	if !ok || err != nil || time.Now().Unix() > ends {
		http.Error(w, "This content is no longer available.", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", f.Type)
	_, _ = w.Write(f.Content) // the client has gone
}
