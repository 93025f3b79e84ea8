// Package answertest has a client for tests of readers and writers of answers. It knows operations only, and folds them by itself, so it shows
// what a client of any format can have.
package answertest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
)

// Client is what a client has of an answer. Two clients that have the same have the same String.
//
// It is strict: it refuses a number that doesn't increase, an append that doesn't begin where its text ends, and an empty append. A writer
// may rely on that.
type Client struct {
	Number  int64             // of the last operation, or -1
	Texts   map[string]string // those that are not empty, by message, part and field
	Open    []string          // ids of requests
	Outcome event.Outcome     // empty until the turn has ended
	// Needless is the number of replaces that took nothing back.
	Needless int

	parts    []string // in the order in which they began
	endedIDs []string // messages and parts
	tools    map[string]event.PartState
	phase    string
}

// New returns a client that has nothing. Its number is that with which a reading of the whole answer begins.
func New() *Client {
	return &Client{Number: -1, Texts: map[string]string{}, tools: map[string]event.PartState{}}
}

// Clone returns a copy.
func (c *Client) Clone() *Client {
	d := *c
	d.Texts, d.tools = maps.Clone(c.Texts), maps.Clone(c.tools)
	d.Open, d.parts, d.endedIDs = slices.Clone(c.Open), slices.Clone(c.parts), slices.Clone(c.endedIDs)
	return &d
}

// String returns everything that the client has.
func (c *Client) String() string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(c.Texts)) {
		fmt.Fprintf(&b, "%s %q\n", k, c.Texts[k])
	}
	fmt.Fprintln(&b, "parts", c.parts, "tools", c.tools, "ended", slices.Sorted(slices.Values(c.endedIDs)), "open", c.Open, "phase", c.phase, "outcome", c.Outcome)
	return b.String()
}

// Apply folds an operation. It returns an error if the operation doesn't follow what the client has.
func (c *Client) Apply(op *answer.Op) error {
	if op.Number <= c.Number {
		return fmt.Errorf("operation %d follows %d", op.Number, c.Number)
	}
	c.Number = op.Number
	part := op.Message + "/" + op.Part
	switch b := op.Get(); op.Type {
	case event.PartAppend, event.PartReplace:
		return c.text(part+"."+op.Field.Name(), op)
	case event.MessageUpdate:
		return errors.New("the state of a user's message is not part of an answer")
	// The parts of a whole message get the ids that the transcript gives them.
	case event.MessageAdd:
		for i, p := range b.Parts {
			id := fmt.Sprint(op.Message, "/p", i+1)
			c.setText(id+".text", p.Text)
			c.parts = append(c.parts, id)
		}
	case event.PartStart:
		c.parts = append(c.parts, part)
	case event.PartUpdate:
		c.tools[part] = b.State
	case event.MessageEnd, event.PartEnd:
		c.endedIDs = append(c.endedIDs, part)
	case event.TurnUpdate:
		c.phase = b.Phase
	case event.TurnWait:
		c.Open = append(c.Open, b.Request.ID)
	case event.TurnResume:
		c.Open = slices.DeleteFunc(c.Open, func(id string) bool { return id == b.Answer.ID })
	case event.TurnEnd:
		c.Outcome, c.Open = b.Outcome, nil
	}
	return nil
}

// text folds an operation on a text.
func (c *Client) text(k string, op *answer.Op) error {
	before := c.Texts[k]
	switch {
	case op.Type == event.PartReplace:
		if strings.HasPrefix(op.Text, before) {
			c.Needless++
		}
		c.setText(k, op.Text)
	case op.Offset != int64(len(before)) || op.Text == "":
		return fmt.Errorf("%q is appended at %d to %s, which has %d bytes", op.Text, op.Offset, k, len(before))
	default:
		c.setText(k, before+op.Text)
	}
	return nil
}

func (c *Client) setText(k, text string) {
	if c.Texts[k] = text; text == "" {
		delete(c.Texts, k)
	}
}
