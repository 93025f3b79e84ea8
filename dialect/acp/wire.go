package acp

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/leat-dev/leat/dialect/internal/canvas"
)

// frame is a message of JSON-RPC.
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

// update is a session/update of any kind.
type update struct {
	Kind      string          `json:"sessionUpdate"`
	MessageID string          `json:"messageId"`
	Content   json.RawMessage `json:"content"` // a block, or a list of a tool's
	State     string          `json:"state"`   // version 2
	Stop      string          `json:"stopReason"`
	Entries   []entry         `json:"entries"`
	call
}

type call struct {
	ID        string          `json:"toolCallId"`
	Title     json.RawMessage `json:"title"`
	Kind      json.RawMessage `json:"kind"`
	Status    json.RawMessage `json:"status"`
	Input     json.RawMessage `json:"rawInput"`
	RawOutput json.RawMessage `json:"rawOutput"`
}

type entry struct {
	Content json.RawMessage `json:"content"`
	Status  string          `json:"status"`
}

// block is a piece of content.
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

// permission is a request for one.
type permission struct {
	Call    call `json:"toolCall"`
	Options []struct {
		ID   string          `json:"optionId"`
		Name json.RawMessage `json:"name"`
		Kind string          `json:"kind"`
	} `json:"options"`
}

// blocks reads a content: one block, or a list.
func blocks(raw json.RawMessage) ([]block, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if raw[0] != '[' {
		raw = append(append(json.RawMessage{'['}, raw...), ']')
	}
	var list []block
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, canvas.Fault("content", err)
	}
	return list, nil
}

// output is a tool's content as text.
func output(raw json.RawMessage) (string, error) {
	var list []struct {
		Type    string          `json:"type"`
		Content json.RawMessage `json:"content"`
		Path    string          `json:"path"`
		Old     json.RawMessage `json:"oldText"`
		New     json.RawMessage `json:"newText"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return "", canvas.Fault("content of a tool", err)
	}
	var texts []string
	for _, c := range list {
		switch c.Type {
		case "content":
			inner, err := blocks(c.Content)
			if err != nil {
				return "", err
			}
			for _, b := range inner {
				texts = append(texts, b.words())
			}
		case "diff":
			texts = append(texts, diff(c.Path, canvas.String(c.Old), canvas.String(c.New)))
		}
	}
	return strings.Join(texts, "\n"), nil
}

// words are a block as text.
func (b *block) words() string {
	switch {
	case b.Resource != nil && b.Resource.Text != nil:
		return canvas.String(b.Resource.Text)
	case b.Resource != nil:
		return b.Resource.URI
	case b.Type == "resource_link":
		return strings.TrimSpace(b.Name + " " + b.URI)
	case b.Type == "image", b.Type == "audio":
		return fmt.Sprintf("(%s)", b.Type)
	}
	return canvas.String(b.Text)
}

// diff shows what of a file has changed: the lines between those that are the same at its beginning and at its end.
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
	refs := []string{fmt.Sprintf("%s, line %d", path, head+1)}
	for _, l := range a[head : len(a)-tail] {
		refs = append(refs, "- "+l)
	}
	for _, l := range b[head : len(b)-tail] {
		refs = append(refs, "+ "+l)
	}
	return strings.Join(refs, "\n")
}

func lines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}
