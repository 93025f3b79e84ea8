package feishu

import (
	"io"
	"net/http"
	"strings"
)

const (
	// maxImage and maxFile are the largest files that bots can send, in bytes.
	maxImage = 10 << 20
	maxFile  = 30 << 20
)

// upload stores an image or a file of the bot.
func (c *call) upload() (any, *failure) {
	if err := c.r.ParseMultipartForm(8 << 20); err != nil {
		return nil, refuse(234001, "Invalid request param: %v", err)
	}
	isImage := c.path[3] == "images"
	field, limit := "file", maxFile
	if isImage {
		field, limit = "image", maxImage
	}
	part, header, err := c.r.FormFile(field)
	if err != nil {
		return nil, refuse(234001, "Invalid request param: %s is missing", field)
	}
	defer part.Close()
	content, err := io.ReadAll(part)
	switch {
	case err != nil:
		return nil, refuse(234001, "Invalid request param: %v", err)
	case len(content) == 0:
		return nil, refuse(234010, "File's size can't be 0.")
	case len(content) > limit:
		return nil, refuse(234006, "The file size exceed the max value.")
	case isImage && c.r.FormValue("image_type") != "message":
		return nil, refuse(234001, "Invalid request param: image_type")
	case isImage && !strings.HasPrefix(http.DetectContentType(content), "image/"):
		return nil, refuse(234011, "Can't regonize image format.")
	case !isImage && (c.r.FormValue("file_type") == "" || c.r.FormValue("file_name") == ""):
		return nil, refuse(234001, "Invalid request param: file_type and file_name are required")
	}
	if isImage {
		key := c.s.id("img_")
		c.s.files[key] = &File{Name: header.Filename, Content: content, IsImage: true}
		return map[string]any{"image_key": key}, nil
	}
	key := c.s.id("file_")
	c.s.files[key] = &File{Name: c.r.FormValue("file_name"), Content: content}
	return map[string]any{"file_key": key}, nil
}

// resource answers with a file that is in a message.
func (c *call) resource() (any, *failure) {
	m, kind := c.s.messages[c.path[4]], c.r.URL.Query().Get("type")
	if m == nil || m.File == nil || len(c.path) < 7 || c.s.files[c.path[6]] != m.File {
		return nil, refuse(234003, "File not in msg.")
	}
	if isImage := kind == "image"; isImage != m.File.IsImage || kind == "" {
		return nil, refuse(234001, "Invalid request param: type")
	}
	if len(m.File.Content) > 100<<20 {
		return nil, refuse(234037, "Downloaded file size exceeds limit.")
	}
	return m.File, nil
}
