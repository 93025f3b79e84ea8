package agui

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/leat-dev/leat/sse"
)

// client folds events as the package @ag-ui/client does, and refuses what that refuses.
//
// It was written from the source of version 1.0.0. The suite in test/compat runs the package itself; this one makes it possible to compare
// hundreds of random logs in a second.
type client struct {
	messages []message
	open     map[string]bool // what can grow, in this run
	ended    string          // the type of the last event
	outcome  *outcome
	failure  string
}

// run folds the events of one run.
func (c *client) run(t *testing.T, stream []byte) {
	t.Helper()
	c.open, c.ended, c.outcome, c.failure = map[string]bool{}, "", nil, ""
	err := (&sse.Reader{}).Feed(stream, func(e sse.Event) error {
		var f frame
		if err := json.Unmarshal(e.Data, &f); err != nil {
			return err
		}
		return c.apply(&f)
	})
	if err != nil {
		t.Fatalf("%v:\n%s", err, stream)
	}
}

// set replaces the message that has the id, or appends one.
func (c *client) set(m message) {
	if i := slices.IndexFunc(c.messages, func(old message) bool { return old.ID == m.ID }); i >= 0 {
		c.messages[i] = m
		return
	}
	c.messages = append(c.messages, m)
}

// find returns the message that has an id, or nil.
func (c *client) find(id string) *message {
	for i := range c.messages {
		if c.messages[i].ID == id {
			return &c.messages[i]
		}
	}
	return nil
}

// apply folds one event. The first event of a run begins it, and nothing follows its end.
func (c *client) apply(f *frame) error {
	if isFirst := c.ended == ""; isFirst != (f.Type == runStarted) || c.ended == runFinished || c.ended == runError {
		return fmt.Errorf("%s after %q", f.Type, c.ended)
	}
	c.ended = f.Type
	switch f.Type {
	case runStarted, reasoningStart, reasoningEnd:
	case runError:
		c.failure = f.Message
	case runFinished:
		c.outcome = f.Outcome
		if len(c.open) > 0 {
			return fmt.Errorf("the run ends with %v open", c.open)
		}
	case textStart, reasoningBegin:
		if c.find(f.MessageID) == nil {
			c.set(message{ID: f.MessageID, Role: f.Role, Content: jsonString("")})
		}
		return c.begin(f.MessageID)
	case textContent, reasoningContent:
		if !c.open[f.MessageID] || f.Delta == "" {
			return fmt.Errorf("%s %q of %s", f.Type, f.Delta, f.MessageID)
		}
		m := c.find(f.MessageID)
		m.Content = jsonString(jsonText(m.Content) + f.Delta)
	case textEnd, reasoningFinish:
		return c.end(f.MessageID)
	case callStart:
		if c.find(f.CallID) == nil {
			call := toolCall{ID: f.CallID, Type: "function"}
			call.Function.Name = f.CallName
			c.set(message{ID: f.CallID, Role: roleAssistant, ToolCalls: []toolCall{call}})
		}
		return c.begin(f.CallID)
	case callArgs:
		if !c.open[f.CallID] {
			return fmt.Errorf("arguments of %s", f.CallID)
		}
		c.find(f.CallID).ToolCalls[0].Function.Arguments += f.Delta
	case callEnd:
		return c.end(f.CallID)
	case callResult:
		if c.find(f.MessageID) != nil {
			return fmt.Errorf("a second result %s", f.MessageID)
		}
		c.set(message{ID: f.MessageID, Role: f.Role, CallID: f.CallID, Content: f.Content})
	case activitySnapshot:
		c.set(message{ID: f.MessageID, Role: roleActivity, ActivityType: f.ActivityType, Content: f.Content})
	case messagesSnapshot:
		c.snapshot(f.Messages)
	default:
		return fmt.Errorf("unknown event %s", f.Type)
	}
	return nil
}

// begin opens what can grow. The client of the package ends the run at a second start.
func (c *client) begin(id string) error {
	if c.open[id] {
		return fmt.Errorf("%s begins twice", id)
	}
	c.open[id] = true
	return nil
}

// end closes what can grow.
func (c *client) end(id string) error {
	if !c.open[id] {
		return fmt.Errorf("%s ends without a start", id)
	}
	delete(c.open, id)
	return nil
}

// snapshot replaces the messages. Those of the client keep their places, and new ones follow.
func (c *client) snapshot(list []message) {
	has := func(role string) bool {
		return slices.ContainsFunc(list, func(m message) bool { return m.Role == role })
	}
	c.messages = slices.DeleteFunc(c.messages, func(m message) bool {
		isIn := slices.ContainsFunc(list, func(n message) bool { return n.ID == m.ID })
		isKept := (m.Role == roleActivity || m.Role == roleReasoning) && !has(m.Role)
		return !isIn && !isKept
	})
	for _, m := range list {
		m.raw = nil
		c.set(m)
	}
}

// input is what the client sends with its next run.
func (c *client) input() *input {
	in := &input{Thread: "t", Run: "r", Protocol: "1.0"}
	for _, m := range c.messages {
		if m.Role != roleActivity {
			in.Messages = append(in.Messages, m)
		}
	}
	return in
}

// texts describes all messages that aren't empty, by their ids.
func texts(list []message) map[string]string {
	all := map[string]string{}
	for _, m := range list {
		if string(m.Content) == `""` && m.Role != roleTool && m.Role != roleUser {
			continue
		}
		all[m.ID] = m.Role + " " + m.ActivityType + " " + string(m.Content)
		for _, call := range m.ToolCalls {
			all[m.ID] += " " + call.Function.Name + " " + call.Function.Arguments
		}
	}
	return all
}
