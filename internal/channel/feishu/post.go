package feishu

import (
	"mime"
	"path"
	"strings"

	"github.com/leat-dev/leat/internal/channel"
)

// paragraph is an element of a paragraph of a rich text.
type paragraph struct {
	Tag      string   `json:"tag"`
	Text     string   `json:"text"`
	Address  string   `json:"href"`    // of a
	User     string   `json:"user_id"` // of at: the key of a mention
	Style    []string `json:"style"`
	Language string   `json:"language"` // of code_block
	ImageKey string   `json:"image_key"`
	FileKey  string   `json:"file_key"`
}

// addPost adds a rich text as Markdown, and its files.
func (c *content) addPost(message, title string, paragraphs [][]paragraph) {
	var lines []string
	if title != "" {
		lines = append(lines, title)
	}
	for _, elements := range paragraphs {
		var line strings.Builder
		for _, e := range elements {
			switch e.Tag {
			case "at":
				line.WriteString(e.User)
			case "a":
				line.WriteString("[" + e.Text + "](" + e.Address + ")")
			case "code_block":
				line.WriteString("```" + strings.ToLower(e.Language) + "\n" + strings.TrimRight(e.Text, "\n") + "\n```")
			case "hr":
				line.WriteString("---")
			case "img":
				c.addFile(message, "image", e.ImageKey, e.ImageKey+".jpg")
			case "media":
				c.addFile(message, "file", e.FileKey, e.FileKey+".mp4")
			default: // text, md
				line.WriteString(e.Text)
			}
		}
		if line.Len() > 0 {
			lines = append(lines, line.String())
		}
	}
	c.text = strings.Join(lines, "\n")
}

// addFile adds a file of a message. Ref contains the message, the kind and the key, which are needed to fetch it.
func (c *content) addFile(message, kind, key, name string) {
	if key == "" {
		return
	}
	mediaType, _, err := mime.ParseMediaType(mime.TypeByExtension(path.Ext(name)))
	if err != nil {
		mediaType = "application/octet-stream"
	}
	c.files = append(c.files, channel.Media{Ref: message + "/" + kind + "/" + key, Name: name, Type: mediaType})
}
