package responses

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// framesOf returns the frames of a stream.
func framesOf(t *testing.T, stream string) (frames []frame) {
	t.Helper()
	for s := range strings.SplitSeq(stream, "\n\n") {
		_, data, ok := strings.Cut(s, "\ndata: ")
		if !ok {
			continue
		}
		var f frame
		if err := json.Unmarshal([]byte(data), &f); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		frames = append(frames, f)
	}
	return frames
}

// client folds events as the official clients do, and fails at those that they refuse.
type client struct {
	number int64
	items  []item
	end    *object
}

func (c *client) apply(f frame) error {
	if f.Number <= c.number {
		return fmt.Errorf("%s has the number %d after %d", f.Type, f.Number, c.number)
	}
	if c.end != nil {
		return fmt.Errorf("%s follows the end", f.Type)
	}
	if first := c.number < 0; first != (f.Type == "response.created") {
		return fmt.Errorf("%s is the first event: %v", f.Type, first)
	}
	c.number = f.Number
	switch f.Type {
	case "response.created", "response.queued", "response.in_progress", "response.mcp_call_arguments.done", "response.mcp_call.completed", "response.mcp_call.failed",
		"response.function_call_arguments.done":
		return nil
	case "response.completed", "response.failed", "response.incomplete":
		c.end = f.Response
		return nil
	case "response.output_item.added":
		if *f.Index != len(c.items) {
			return fmt.Errorf("item %d is added after %d", *f.Index, len(c.items))
		}
		c.items = append(c.items, *f.Item)
		return nil
	}
	if *f.Index >= len(c.items) {
		return fmt.Errorf("%s of an unknown item", f.Type)
	}
	it := &c.items[*f.Index]
	if it.Status == statusCompleted && it.Type != "mcp_approval_request" && f.Type != "response.output_item.done" {
		return fmt.Errorf("%s of an item that is done", f.Type)
	}
	switch f.Type {
	case "response.output_item.done":
		*it = *f.Item
	case "response.function_call_arguments.delta":
		*it.Arguments += f.Delta
	case "response.content_part.added":
		*it.Content = append(*it.Content, *f.Part)
	case "response.reasoning_summary_part.added":
		*it.Summary = append(*it.Summary, *f.Part)
	case "response.output_text.delta":
		(*it.Content)[0].Text += f.Delta
	case "response.reasoning_summary_text.delta":
		(*it.Summary)[0].Text += f.Delta
	case "response.output_text.done":
		(*it.Content)[0].Text = *f.Text
	case "response.reasoning_summary_text.done":
		(*it.Summary)[0].Text = *f.Text
	case "response.content_part.done":
		(*it.Content)[0] = *f.Part
	case "response.reasoning_summary_part.done":
		(*it.Summary)[0] = *f.Part
	default:
		return fmt.Errorf("unknown event %s", f.Type)
	}
	return nil
}
