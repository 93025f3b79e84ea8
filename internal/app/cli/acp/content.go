// The content of prompts.

package acp

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"path"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/jsonrpc"
)

// maxInline is the limit of the pictures inside a message, in bytes of base64. The gateway accepts 1 MiB for a command, with the texts.
const maxInline = 512 << 10

// parts returns a prompt as the parts of a message: the text first, and then the files, which agents get in the form of their protocol. Pictures and other data that are too large for a message are stored at the gateway first.
func (s *session) parts(ctx context.Context, content []block) ([]event.Part, error) {
	var list []event.Part
	if text, err := textOf(content); err != nil {
		return nil, err
	} else if text != "" {
		list = append(list, event.Part{Kind: event.KindText, Text: text})
	}
	inline := 0
	// Small pictures travel inside the message, which saves a request for each, and works with a gateway that stores no files.
	for i := range content {
		name, mime, encoded := attachment(&content[i])
		if encoded == "" {
			continue
		}
		data, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return nil, jsonrpc.Errorf(jsonrpc.InvalidParams, "block %d: invalid base64: %v", i+1, err)
		}
		if inline += len(encoded); inline <= maxInline {
			url := "data:" + mime + ";base64," + encoded
			list = append(list, event.Part{Kind: event.KindMedia, Media: &event.Media{URL: url, MIME: mime, Name: name}})
			continue
		}
		m, err := s.host.Client.Upload(ctx, s.id, name, mime, bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return nil, fmt.Errorf("upload %s: %w", name, err)
		}
		list = append(list, event.Part{Kind: event.KindMedia, Media: &m})
	}
	if len(list) == 0 {
		return nil, jsonrpc.Errorf(jsonrpc.InvalidParams, "the prompt is empty")
	}
	return list, nil
}

// attachment returns the name, type and base64 of a block that isn't text, or nothing.
func attachment(b *block) (name, mime, encoded string) {
	switch {
	case b.Type == "image" || b.Type == "audio":
		name = b.Type
		if b.URI != "" {
			name = path.Base(b.URI)
		}
		return name, b.MIME, b.Data
	case b.Type == "resource" && b.Resource != nil && b.Resource.Blob != "":
		mime := b.Resource.MIME
		if mime == "" {
			mime = "application/octet-stream"
		}
		return path.Base(b.Resource.URI), mime, b.Resource.Blob
	}
	return "", "", ""
}

// textOf returns the text of a prompt. Editors put files between words, so the texts are joined without a separator, and each file is a link.
// The texts of files that the editor has embedded follow at the end, for agents that can't read them themselves.
func textOf(content []block) (string, error) {
	var text, files strings.Builder
	for i := range content {
		b := &content[i]
		switch {
		case b.Type == "text":
			text.WriteString(b.Text)
		case b.Type == "resource_link":
			text.WriteString(link(b.Name, b.URI))
		case b.Type == "resource" && b.Resource != nil:
			r := b.Resource
			text.WriteString(link(path.Base(r.URI), r.URI))
			if r.Text != "" {
				fmt.Fprintf(&files, "\n\n%s:\n%s", strings.TrimPrefix(r.URI, "file://"), fenced(r.Text))
			}
		case b.Type == "image" || b.Type == "audio":
		default:
			return "", jsonrpc.Errorf(jsonrpc.InvalidParams, "block %d: unknown type %q", i+1, b.Type)
		}
	}
	return strings.TrimSpace(text.String() + files.String()), nil
}

// link returns a link in Markdown, with the address as the editor has sent it. An agent on the same computer can read a file:// address, and
// for others the name still says what is meant. Editors name files in the text with an @.
func link(name, uri string) string {
	if name == "" {
		name = path.Base(uri)
	}
	return "[@" + name + "](" + uri + ")"
}

// fenced returns a text as a code block, with a fence that is longer than any in the text.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + strings.TrimSuffix(text, "\n") + "\n" + fence
}
