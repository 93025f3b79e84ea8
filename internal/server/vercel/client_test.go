package vercel

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/leat-dev/leat/sse"
)

// client folds chunks as processUIMessageStream of the SDK does, and refuses what the SDK refuses.
type client struct {
	version   sdk
	messageID string
	parts     []*clientPart
	failure   string // the text of an error chunk
	finish    string // the finish reason; "-" without one
	isDone    bool

	active map[string]*clientPart // texts that can grow, of this response
	calls  map[string]*clientPart // calls whose input can grow, of this response
}

// clientPart is a part of the client's message. A step's start is one too.
type clientPart struct {
	kind  string // type of the chunk that began it, without its ending
	id    string
	text  string
	input string // of a call, as it streams
	state string // of a call
	final json.RawMessage
	out   string // of a call: output or error
}

// known are the chunks of the versions.
var known = map[sdk]string{
	sdk5: " text-start text-delta text-end error tool-input-start tool-input-delta tool-input-available tool-input-error tool-output-available tool-output-error reasoning-start reasoning-delta reasoning-end source-url source-document file start-step finish-step start finish abort message-metadata ",
	sdk6: " tool-approval-request tool-output-denied ",
	sdk7: " reset-step tool-approval-response ",
}

func knows(version sdk, kind string) bool {
	for v, list := range known {
		if v <= version && strings.Contains(list, " "+kind+" ") {
			return true
		}
	}
	return strings.HasPrefix(kind, "data-")
}

// respond folds one response, which continues the message if the client has one.
func (c *client) respond(t *testing.T, stream []byte) {
	t.Helper()
	c.active, c.calls, c.isDone, c.failure, c.finish = map[string]*clientPart{}, map[string]*clientPart{}, false, "", ""
	starts := 0
	err := (&sse.Reader{}).Feed(stream, func(e sse.Event) error {
		switch {
		case c.isDone:
			return fmt.Errorf("%s follows the end", e.Data)
		case string(e.Data) == "[DONE]":
			c.isDone = true
			return nil
		case c.failure != "" || c.finish != "":
			return fmt.Errorf("%s follows the finish", e.Data)
		}
		var ch chunk
		if err := json.Unmarshal(e.Data, &ch); err != nil {
			return err
		}
		if ch.Type == "start" {
			starts++
			if c.messageID != "" && c.messageID != ch.MessageID {
				return fmt.Errorf("the message is renamed to %s", ch.MessageID)
			}
			c.messageID = ch.MessageID
			return nil
		}
		return c.apply(&ch)
	})
	if err != nil || starts != 1 {
		t.Fatalf("%v, %d starts:\n%s", err, starts, stream)
	}
}

func (c *client) apply(ch *chunk) error {
	if !knows(c.version, ch.Type) {
		return fmt.Errorf("version %d doesn't know %s", c.version, ch.Type)
	}
	kind, suffix := ch.Type, ""
	if i := strings.LastIndexByte(ch.Type, '-'); i > 0 {
		kind, suffix = ch.Type[:i], ch.Type[i+1:]
	}
	switch ch.Type {
	case "start-step":
		c.parts = append(c.parts, &clientPart{kind: "step"})
	case "reset-step":
		c.parts = slices.Clone(c.parts[:c.stepStart()])
		c.active, c.calls = map[string]*clientPart{}, map[string]*clientPart{}
	case "finish-step", "abort":
	case "finish":
		c.finish = "-" + ch.FinishReason
	case "error":
		c.failure = ch.ErrorText
	case "text-start", "reasoning-start":
		p := &clientPart{kind: kind, id: ch.ID}
		c.parts, c.active[kind+ch.ID] = append(c.parts, p), p
	case "text-delta", "text-end", "reasoning-delta", "reasoning-end":
		p := c.active[kind+ch.ID]
		if p == nil {
			return fmt.Errorf("%s of an unknown part %s", ch.Type, ch.ID)
		}
		p.text += ch.Delta
		if suffix == "end" {
			p.state = "done"
			delete(c.active, kind+ch.ID)
		}
	case "file":
		c.parts = append(c.parts, &clientPart{kind: "file", text: ch.URL})
	default:
		if strings.HasPrefix(ch.Type, "data-") {
			c.data(ch)
			return nil
		}
		return c.tool(ch)
	}
	return nil
}

// stepStart returns the index of the first part of the current step.
func (c *client) stepStart() int {
	for i, p := range slices.Backward(c.parts) {
		if p.kind == "step" {
			return i + 1
		}
	}
	return 0
}

func (c *client) data(ch *chunk) {
	for _, p := range c.parts {
		if p.kind == ch.Type && p.id == ch.ID {
			p.text = string(ch.Data)
			return
		}
	}
	c.parts = append(c.parts, &clientPart{kind: ch.Type, id: ch.ID, text: string(ch.Data)})
}

func (c *client) tool(ch *chunk) error {
	// Inputs find a call in the current step only, outputs in the whole message.
	find := func(parts []*clientPart) *clientPart {
		for _, p := range slices.Backward(parts) {
			if p.kind == "tool" && p.id == ch.ToolCallID {
				return p
			}
		}
		return nil
	}
	call := find(c.parts[c.stepStart():])
	switch ch.Type {
	case "tool-input-start", "tool-input-available":
		if call == nil {
			call = &clientPart{kind: "tool", id: ch.ToolCallID}
			c.parts = append(c.parts, call)
		}
		if ch.Type == "tool-input-start" {
			call.state, call.input, c.calls[call.id] = "input-streaming", "", call
			return nil
		}
		if ch.Input == nil {
			return fmt.Errorf("call %s has no input", ch.ToolCallID)
		}
		call.state, call.final = "input-available", ch.Input
		return nil
	case "tool-input-delta":
		if call = c.calls[ch.ToolCallID]; call == nil {
			return fmt.Errorf("input of an unknown call %s", ch.ToolCallID)
		}
		call.input += ch.InputTextDelta
		return nil
	}
	if call == nil {
		call = find(c.parts)
	}
	if call == nil || call.final == nil {
		return fmt.Errorf("%s of a call %s without input", ch.Type, ch.ToolCallID)
	}
	switch ch.Type {
	case "tool-approval-request":
		call.state = "approval-requested"
	case "tool-output-available":
		call.state, call.out = "output-available", string(ch.Output)
		if ch.Preliminary {
			call.state = "preliminary"
		}
	case "tool-output-error":
		call.state, call.out = "output-error", ch.ErrorText
	case "tool-output-denied":
		call.state = "output-denied"
	}
	return nil
}

// text returns the text that the client has of a part.
func (c *client) text(kind, id string) (text string) {
	for _, p := range c.parts {
		if p.kind == kind && p.id == id {
			text += p.text
		}
	}
	return text
}

// call returns the newest call with an id, or nil, and how many there are.
func (c *client) call(id string) (call *clientPart, n int) {
	for _, p := range c.parts {
		if p.kind == "tool" && p.id == id {
			call = p
			n++
		}
	}
	return call, n
}
