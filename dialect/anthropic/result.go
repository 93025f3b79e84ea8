package anthropic

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/event"
)

// result is what a tool gave.
type result struct {
	output, stderr string
	err            *event.Error
}

// content is what the contents of results have in common.
type content struct {
	Type       string          `json:"type"`
	ErrorCode  string          `json:"error_code"`
	Stdout     *string         `json:"stdout"`
	Stderr     string          `json:"stderr"`
	ReturnCode int             `json:"return_code"`
	Content    json.RawMessage `json:"content"` // of a program: the files that it left
}

// parseResult splits a *_tool_result block into output, stderr and error. The output of a program and texts are plain lines; anything else is
// JSON, without the encrypted fields, which are large and useless to a reader.
func parseResult(c *block) result {
	var r result
	var piece content
	if json.Unmarshal(c.Content, &piece) == nil {
		switch {
		case piece.ErrorCode != "" || strings.HasSuffix(piece.Type, "_error"):
			r.err = &event.Error{Code: piece.ErrorCode, Message: strings.ReplaceAll(piece.ErrorCode, "_", " ")}
			if r.err.Message == "" {
				r.err.Message = "the tool failed"
			}
			return r
		case piece.Stdout != nil:
			r.output, r.stderr = withFiles(*piece.Stdout, piece.Content), piece.Stderr
			if piece.ReturnCode != 0 {
				r.err = &event.Error{Code: "exit_status", Message: "exit status " + strconv.Itoa(piece.ReturnCode)}
			}
			return r
		}
	}
	r.output = plain(c.Content)
	if c.IsError {
		r.err = &event.Error{Message: "the tool failed"}
	}
	return r
}

// withFiles adds a line for each file that a program left. The upstream gives only its id, which is often the whole result.
func withFiles(stdout string, content json.RawMessage) string {
	var files []struct {
		ID string `json:"file_id"`
	}
	if json.Unmarshal(content, &files) != nil {
		return stdout
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

// plain returns the lines of text blocks, a string as it is, and anything else as JSON.
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

// legible drops the encrypted fields.
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
