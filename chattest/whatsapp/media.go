package whatsapp

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
)

// limit is what a kind of message accepts.
type limit struct {
	types []string // media types, without parameters
	bytes int
}

// kinds are the kinds of messages with files (cloud-api/reference/media, "Supported media types").
var kinds = map[string]limit{
	"audio": {[]string{"audio/aac", "audio/amr", "audio/mpeg", "audio/mp4", "audio/ogg"}, 16 << 20},
	"image": {[]string{"image/jpeg", "image/png"}, 5 << 20},
	"video": {[]string{"video/mp4", "video/3gpp"}, 16 << 20},
	"document": {[]string{
		"text/plain", "application/pdf", "application/msword", "application/vnd.ms-excel", "application/vnd.ms-powerpoint",
		"application/vnd.openxmlformats-officedocument.wordprocessingml.document",
		"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
		"application/vnd.openxmlformats-officedocument.presentationml.presentation",
	}, 100 << 20},
}

// accepts reports whether a file can be sent as this kind of message.
func (l limit) accepts(f *File) bool {
	return len(f.Content) <= l.bytes && slices.Contains(l.types, f.Type)
}

// upload stores a file of the bot.
func (c *call) upload() (any, *failure) {
	if err := c.r.ParseMultipartForm(8 << 20); err != nil {
		return nil, invalid("The body isn't a form: %v", err)
	}
	if c.r.FormValue("messaging_product") != "whatsapp" {
		return nil, invalid("The parameter messaging_product is required.")
	}
	part, header, err := c.r.FormFile("file")
	if err != nil {
		return nil, invalid("The parameter file is required.")
	}
	defer part.Close()
	content, err := io.ReadAll(part)
	if err != nil || len(content) == 0 {
		return nil, invalid("Param file must be a file with content.")
	}
	kind, _, err := mime.ParseMediaType(header.Header.Get("Content-Type"))
	f := &File{Name: header.Filename, Type: kind, Content: content}
	if err != nil || !isAccepted(f) {
		return nil, invalid("Param file must be a file with one of the following types: audio/aac, …. Received file of type '%s'.", kind)
	}
	id := c.s.id("")
	c.s.files[id] = f
	return map[string]any{"id": id}, nil
}

// isAccepted reports whether a file can be sent as some kind of message.
func isAccepted(f *File) bool {
	for _, l := range kinds {
		if l.accepts(f) {
			return true
		}
	}
	return false
}

// media answers with the address of a file.
func (c *call) media() (any, *failure) {
	f := c.s.files[c.object]
	if f == nil {
		return nil, unknownObject(c.r.Method, c.object)
	}
	scheme := "http://"
	if c.r.TLS != nil || c.r.URL.Scheme == "https" {
		scheme = "https://"
	}
	sum := sha256.Sum256(f.Content)
	return map[string]any{
		"messaging_product": "whatsapp", "url": scheme + c.r.Host + "/download/" + c.object, "mime_type": f.Type,
		"sha256":    hex.EncodeToString(sum[:]),
		"file_size": len(f.Content), "id": c.object,
	}, nil
}

// download answers with the bytes of a file.
func (c *call) download() (any, *failure) {
	f := c.s.files[c.object]
	if f == nil {
		return nil, &failure{status: http.StatusNotFound, code: 100, message: "Not Found"}
	}
	return f, nil
}

// kindOf returns the kind of message in which people send a file.
func kindOf(f File) string {
	kind, _, _ := strings.Cut(f.Type, "/")
	if _, ok := kinds[kind]; ok {
		return kind
	}
	return "document"
}
