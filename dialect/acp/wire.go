package acp

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/leat-dev/leat/dialect/internal/decoding"
)

// frame is a message of JSON-RPC: a notification (method without id), a request (method and id) or a response (no method).
type frame struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    json.Number     `json:"code"`
		Message json.RawMessage `json:"message"`
	} `json:"error"`
}

// params has the parameters of session/update.
type params struct {
	Update update `json:"update"`
}

// update is a session/update of any kind. Texts are raw, because a character may be split between two chunks. The optional fields of a call
// are raw, so that a wrong type in one of them doesn't make the frame invalid.
type update struct {
	Kind      string          `json:"sessionUpdate"`
	MessageID string          `json:"messageId"`
	Content   json.RawMessage `json:"content"` // a block, a list of blocks (version 2), or the list of a tool's contents
	State     string          `json:"state"`   // of a state_update (version 2)
	Stop      string          `json:"stopReason"`
	Entries   []entry         `json:"entries"`
	call
}

// call is a tool call, in an update or in a request for permission. An update may leave out everything but the id.
type call struct {
	ID        string          `json:"toolCallId"`
	Title     json.RawMessage `json:"title"`
	Kind      json.RawMessage `json:"kind"`
	Status    json.RawMessage `json:"status"`
	Input     json.RawMessage `json:"rawInput"`
	RawOutput json.RawMessage `json:"rawOutput"`
}

// entry is a line of a plan.
type entry struct {
	Content json.RawMessage `json:"content"`
	Status  string          `json:"status"`
}

// block is a ContentBlock of the protocol: text, image, audio, resource_link or resource (which is embedded).
type block struct {
	Type     string          `json:"type"`
	Text     json.RawMessage `json:"text"`
	Data     string          `json:"data"` // base64
	MimeType string          `json:"mimeType"`
	URI      string          `json:"uri"`
	Name     string          `json:"name"`
	Resource *struct {
		URI  string          `json:"uri"`
		Text json.RawMessage `json:"text"`
	} `json:"resource"`
}

// permission has the parameters of session/request_permission.
type permission struct {
	Call    call `json:"toolCall"`
	Options []struct {
		ID   string          `json:"optionId"`
		Name json.RawMessage `json:"name"`
		Kind string          `json:"kind"`
	} `json:"options"`
}

// blocks decodes a content, which is one block in chunks and a list of blocks in messages of version 2. null is an empty list.
// The result is valid until the next call.
func (r *reader) blocks(raw json.RawMessage) ([]block, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if b, ok := contents.Try(&r.block, raw); ok {
		r.list[0] = *b
		return r.list[:], nil
	}
	if raw[0] != '[' {
		raw = append(append(json.RawMessage{'['}, raw...), ']')
	}
	var list []block
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, decoding.Fault("content", err)
	}
	return list, nil
}

// output returns a tool's content as text: the text of its blocks, and the changed lines of its diffs. A terminal is left out: its
// output isn't in the stream, and Leat offers agents no terminals.
func (r *reader) output(raw json.RawMessage) (string, error) {
	var list []struct {
		Type    string          `json:"type"`
		Content json.RawMessage `json:"content"`
		Path    string          `json:"path"`
		Old     json.RawMessage `json:"oldText"`
		New     json.RawMessage `json:"newText"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return "", decoding.Fault("content of a tool", err)
	}
	var texts []string
	for _, c := range list {
		switch c.Type {
		case "content":
			inner, err := r.blocks(c.Content)
			if err != nil {
				return "", err
			}
			for _, b := range inner {
				texts = append(texts, b.words())
			}
		case "diff":
			texts = append(texts, diff(c.Path, decoding.String(c.Old), decoding.String(c.New)))
		}
	}
	return strings.Join(texts, "\n"), nil
}

// words returns a block of a tool's output as text. An image or audio is only mentioned, because a tool's output has no media.
func (b *block) words() string {
	switch {
	case b.Resource != nil && b.Resource.Text != nil:
		return decoding.String(b.Resource.Text)
	case b.Resource != nil:
		return b.Resource.URI
	case b.Type == "resource_link":
		return strings.TrimSpace(b.Name + " " + b.URI)
	case b.Type == "image", b.Type == "audio":
		return fmt.Sprintf("(%s)", b.Type)
	}
	return decoding.String(b.Text)
}

// diff returns the changed lines of a file: all lines but those that are the same at the beginning and at the end of both versions. Its cost
// is linear in the size of the file, unlike that of a minimal diff, and a frame may contain a file of megabytes.
func diff(path, before, after string) string {
	a, b := lines(before), lines(after)
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	changes := []string{fmt.Sprintf("%s, line %d", path, head+1)}
	for _, l := range a[head : len(a)-tail] {
		changes = append(changes, "- "+l)
	}
	for _, l := range b[head : len(b)-tail] {
		changes = append(changes, "+ "+l)
	}
	return strings.Join(changes, "\n")
}

// lines splits a text into lines without their ends. An empty file has no lines.
func lines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}
