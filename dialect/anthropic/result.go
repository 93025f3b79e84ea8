// The results of tools that run at the provider.

package anthropic

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/event"
)

// result is the outcome of a tool as readers see it. err is nil if the tool has succeeded.
type result struct {
	output, stderr string
	err            *event.Error
}

// content is the content of a result if it is an object: an error, or the output of a program. Every tool has its own type of content; these
// are the fields that they share.
type content struct {
	Type       string          `json:"type"`
	ErrorCode  string          `json:"error_code"`
	Stdout     *string         `json:"stdout"`
	Stderr     string          `json:"stderr"`
	ReturnCode int             `json:"return_code"`
	Content    json.RawMessage `json:"content"` // of a program: the files that it has written
}

// parseResult splits a *_tool_result block into output, stderr and error. The output of a program and texts are plain lines; anything else is
// JSON, without the encrypted fields, which are large and useless to a reader.
func parseResult(c *block) result {
	var r result
	var piece content
	// The content of the other tools is a list or a text, which doesn't decode into the struct.
	if json.Unmarshal(c.Content, &piece) == nil {
		switch {
		case piece.ErrorCode != "" || strings.HasSuffix(piece.Type, "_error"):
			r.err = &event.Error{Code: piece.ErrorCode, Message: cmp.Or(strings.ReplaceAll(piece.ErrorCode, "_", " "), "the tool failed")}
			return r
		case piece.Stdout != nil:
			r.output, r.stderr = withFiles(*piece.Stdout, piece.Content), piece.Stderr
			if piece.ReturnCode != 0 {
				r.err = &event.Error{Code: "exit_status", Message: "exit status " + strconv.Itoa(piece.ReturnCode)}
			}
			return r
		}
	}
	// Any other content is shown as text; whether it is an error is in the block.
	r.output = plain(c.Content)
	if c.IsError {
		r.err = &event.Error{Message: "the tool failed"}
	}
	return r
}

// withFiles appends to stdout a line for each file that a program has written. The upstream sends only the file's id, and many
// programs write a file and print nothing.
func withFiles(stdout string, content json.RawMessage) string {
	var files []struct {
		ID string `json:"file_id"`
	}
	if json.Unmarshal(content, &files) != nil {
		return stdout // no list of files
	}
	for _, f := range files {
		if f.ID == "" {
			continue
		}
		if stdout != "" && !strings.HasSuffix(stdout, "\n") {
			stdout += "\n"
		}
		stdout += "file_id: " + f.ID + "\n"
	}
	return stdout
}

// plain returns a content as text: a string as it is, a list of text blocks as lines, and anything else as JSON. Numbers keep their digits,
// because float64 would round large ids.
func plain(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var blocks []struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if json.Unmarshal(raw, &blocks) == nil && len(blocks) > 0 {
		texts := make([]string, 0, len(blocks))
		for _, b := range blocks {
			if b.Type == "text" && b.Text != nil {
				texts = append(texts, *b.Text)
			}
		}
		if len(texts) == len(blocks) {
			return strings.Join(texts, "\n")
		}
	}
	// A list with other blocks than text, or an object.
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil || v == nil {
		return ""
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if enc.Encode(legible(v)) != nil {
		return ""
	}
	return strings.TrimSuffix(buf.String(), "\n")
}

// legible removes the encrypted fields from a JSON value, at any depth. They are for a client that sends the result back to the API.
func legible(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if strings.HasPrefix(k, "encrypted_") {
				delete(v, k)
			} else {
				v[k] = legible(x)
			}
		}
	case []any:
		for i := range v {
			v[i] = legible(v[i])
		}
	}
	return v
}
