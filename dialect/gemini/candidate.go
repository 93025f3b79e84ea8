package gemini

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// The kinds of parts that the next chunk can continue.
const (
	kindText    = "text"
	kindThought = "thought"
	kindCall    = "call"
	kindCode    = "code" // that runs
)

// answer is a candidate.
type answer struct {
	Index       int          `json:"index"`
	Finished    bool         `json:"finished,omitempty"`
	Reason      string       `json:"reason,omitempty"`
	Message     string       `json:"message,omitempty"`
	Parts       int          `json:"parts,omitempty"` // how many have begun; the last is the one at hand
	Open        string       `json:"open,omitempty"`  // its kind; empty if it has ended
	Text        dialect.Text `json:"text,omitzero"`
	Args        *args        `json:"args,omitempty"`   // of a call that comes in pieces
	ServerCalls []serverCall `json:"served,omitempty"` // calls whose results have not come
}

func (a *answer) key() string { return strconv.Itoa(a.Index) }

func (a *answer) part() string { return strconv.Itoa(a.Parts) }

// piece takes a part of a chunk.
func (d *decoder) piece(a *answer, in *part) error {
	switch {
	case in.Call != nil:
		return d.call(a, in.Call)
	case in.ToolCall != nil:
		return d.serve(a, in.ToolCall)
	case in.ToolResponse != nil:
		return d.finishServed(a, in.ToolResponse)
	case in.Inline != nil:
		d.media(a, &event.Media{URL: "data:" + in.Inline.MIME + ";base64," + in.Inline.Data, MIME: in.Inline.MIME, Name: in.Inline.Name})
	case in.File != nil:
		d.media(a, &event.Media{URL: in.File.URI, MIME: in.File.MIME})
	case in.Code != nil:
		return d.code(a, in.Code.Code)
	case in.Result != nil:
		d.result(a, in.Result.Outcome, in.Result.Output)
	case in.Text != nil && in.Thought:
		return d.text(a, kindThought, in.Text)
	case in.Text != nil:
		return d.text(a, kindText, in.Text)
	case in.Signature != "":
	default:
		d.Unknowns.Add("part")
	}
	return nil
}

// begin starts a part of another kind than the one at hand, which ends.
func (d *decoder) begin(a *answer, kind string, b *event.Body) error {
	d.endPart(a)
	if a.Parts == maxParts {
		return errManyParts
	}
	a.Parts++
	a.Open = kind
	d.Emit(event.Event{Type: event.PartStart, Message: a.key(), Part: a.part(), Body: b})
	return nil
}

// endPart ends the part at hand.
func (d *decoder) endPart(a *answer) {
	switch a.Open {
	case "":
		return
	case kindCall:
		d.input(a, a.Args.close())
		a.Args = nil
	case kindText, kindThought:
		d.say(a, a.Text.Close())
	}
	a.Open = ""
	d.Emit(event.Event{Type: event.PartEnd, Message: a.key(), Part: a.part()})
}

func (d *decoder) say(a *answer, text string) {
	if text != "" {
		d.Emit(event.Event{Type: event.PartAppend, Message: a.key(), Part: a.part(), Text: text})
	}
}

func (d *decoder) input(a *answer, text string) {
	if text != "" {
		d.Emit(event.Event{Type: event.PartAppend, Message: a.key(), Part: a.part(), Field: event.Input, Text: text})
	}
}

func (d *decoder) text(a *answer, kind string, raw json.RawMessage) error {
	if string(raw) == `""` || string(raw) == "null" {
		return nil // it carries a signature, and ends nothing
	}
	if a.Open != kind {
		b := &event.Body{Kind: event.KindReasoning}
		if kind == kindText {
			b = &event.Body{Kind: event.KindText, Join: event.JoinBlank}
		}
		if err := d.begin(a, kind, b); err != nil {
			return err
		}
	}
	text, err := a.Text.JSON(raw)
	if err != nil {
		return err
	}
	d.say(a, text)
	return nil
}

func (d *decoder) media(a *answer, m *event.Media) {
	if d.begin(a, kindText, &event.Body{Kind: event.KindMedia, Media: m}) == nil {
		d.endPart(a)
	}
}

// call takes a call, or a piece of the one at hand.
func (d *decoder) call(a *answer, c *call) error {
	if c.Name != "" || a.Open != kindCall {
		if c.Name == "" && c.Args == nil && c.Partial == nil {
			return nil // the end of a call that has ended
		}
		if err := d.begin(a, kindCall, &event.Body{Kind: event.KindTool, Name: c.Name, Call: c.ID}); err != nil {
			return err
		}
		a.Args = &args{}
		if c.Args != nil || !c.Continue && c.Partial == nil {
			d.input(a, object(c.Args))
			a.Open = ""
			a.Args = nil
			d.Emit(event.Event{Type: event.PartEnd, Message: a.key(), Part: a.part()})
			return nil
		}
	}
	for i := range c.Partial {
		text, err := a.Args.write(&c.Partial[i])
		if err != nil {
			return err
		}
		d.input(a, text)
	}
	if !c.Continue {
		d.endPart(a)
	}
	return nil
}

// code takes code that the server runs.
func (d *decoder) code(a *answer, raw json.RawMessage) error {
	if err := d.begin(a, kindCode, &event.Body{Kind: event.KindTool, Name: "code_execution", State: event.PartRunning}); err != nil {
		return err
	}
	var s string
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &s); err != nil {
			return err
		}
	}
	d.input(a, s)
	return nil
}

// result takes what the code gave.
func (d *decoder) result(a *answer, outcome, output string) {
	if a.Open != kindCode {
		d.Unknowns.Add("result of no code")
		return
	}
	if output != "" {
		d.Emit(event.Event{Type: event.PartAppend, Message: a.key(), Part: a.part(), Field: event.Output, Text: output})
	}
	b := &event.Body{State: event.PartDone}
	if outcome != "OUTCOME_OK" && outcome != "" {
		b = &event.Body{State: event.PartFailed, Error: &event.Error{Code: outcome, Message: "the code failed"}}
		if outcome == "OUTCOME_DEADLINE_EXCEEDED" {
			b.Error.Message = "the code took too long"
		}
	}
	d.Emit(event.Event{Type: event.PartUpdate, Message: a.key(), Part: a.part(), Body: b})
	d.endPart(a)
}

// compact is JSON on one line.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if len(raw) == 0 || json.Compact(&b, raw) != nil {
		return ""
	}
	return b.String()
}
