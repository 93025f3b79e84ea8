package eliza

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// chat follows the rules by which Eliza's client reads streams. It is stricter: bad JSON, data over several lines, and frames
// after the end are errors.
type chat struct {
	text   string // in the chat bubble
	views  []string
	kinds  []string // of status frames
	ids    []string
	tokens []token
	done   *doneFrame
	failed *errorFrame
	beats  int
	rest   []byte
}

type token struct {
	Text     *string `json:"text"`
	FullText *string `json:"fullText"`
}

// feed reads the next bytes of the stream. Frames end with a blank line.
func (c *chat) feed(b []byte) error {
	c.rest = append(c.rest, b...)
	for {
		i := bytes.Index(c.rest, []byte("\n\n"))
		if i < 0 {
			if j := bytes.Index(c.rest, []byte("\r\n\r\n")); j >= 0 {
				return fmt.Errorf("a frame ends with CRLF")
			}
			return nil
		}
		f := string(c.rest[:i])
		c.rest = c.rest[i+2:]
		if err := c.frame(f); err != nil {
			return fmt.Errorf("%w in frame %q", err, f)
		}
	}
}

func (c *chat) frame(f string) error {
	var data []string
	for line := range strings.SplitSeq(f, "\n") {
		switch {
		case line == ": heartbeat":
			c.beats++
		case strings.HasPrefix(line, "id: "):
			c.ids = append(c.ids, line[4:])
		case strings.HasPrefix(line, "data: "):
			data = append(data, line[6:])
		default:
			return fmt.Errorf("line %q", line)
		}
	}
	if len(data) == 0 {
		return nil
	}
	if len(data) > 1 {
		return fmt.Errorf("data over %d lines", len(data))
	}
	if c.done != nil || c.failed != nil {
		return fmt.Errorf("something after the end")
	}
	var head struct {
		Type string `json:"type"`
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal([]byte(data[0]), &head); err != nil {
		return err
	}
	switch head.Type {
	case "token":
		var k token
		if err := json.Unmarshal([]byte(data[0]), &k); err != nil {
			return err
		}
		c.tokens = append(c.tokens, k)
		switch {
		case k.FullText != nil: // fullText replaces the whole bubble
			if k.Text != nil && !strings.HasSuffix(*k.FullText, *k.Text) {
				return fmt.Errorf("text is not the end of fullText")
			}
			c.text = *k.FullText
		case k.Text != nil:
			c.text += *k.Text
		default:
			return fmt.Errorf("a token without text")
		}
		c.views = append(c.views, c.text)
	case "status":
		c.kinds = append(c.kinds, head.Kind)
	case "done":
		c.done = &doneFrame{}
		if err := json.Unmarshal([]byte(data[0]), c.done); err != nil {
			return err
		}
	case "error":
		c.failed = &errorFrame{}
		if err := json.Unmarshal([]byte(data[0]), c.failed); err != nil {
			return err
		}
	default:
		return fmt.Errorf("type %q", head.Type)
	}
	return nil
}

// final is the client's text after the end.
func (c *chat) final() string {
	if c.done != nil {
		return c.done.FullText
	}
	return c.text
}
