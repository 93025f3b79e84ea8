// The candidates of a response: their texts, thoughts, calls and files.

package gemini

import (
	"encoding/json"
	"strconv"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// The values of answer.Open: the kinds of parts that the next chunk can continue.
const (
	kindText    = "text"
	kindThought = "thought"
	kindCall    = "call"
	kindCode    = "code" // code that the server runs
)

// answer is a candidate. Its parts follow each other, so at most one is open, except for the calls in ServerCalls.
type answer struct {
	Index       int          `json:"index"`
	Finished    bool         `json:"finished,omitempty"`
	Reason      string       `json:"reason,omitempty"`  // the finishReason
	Message     string       `json:"message,omitempty"` // the finishMessage
	Parts       int          `json:"parts,omitempty"`   // the number of parts started; the last one's key
	Open        string       `json:"open,omitempty"`    // the kind of the open part, or empty if none is open
	Text        dialect.Text `json:"text,omitzero"`
	Args        *args        `json:"args,omitempty"`   // of an open call whose arguments arrive in pieces
	ServerCalls []serverCall `json:"served,omitempty"` // calls without a result yet
}

// key returns the key of the candidate's message.
func (a *answer) key() string { return strconv.Itoa(a.Index) }

// part returns the key of the last part.
func (a *answer) part() string { return strconv.Itoa(a.Parts) }

// piece applies a part of a chunk. The API puts one kind of content in each part. A part with only a signature has nothing to show:
// clients send the signature back, so that the model can continue its reasoning.
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

// begin ends the open part and starts another one.
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

// endPart ends the open part, if any. It first emits what the part still lacks: an incomplete character, or the end of a call's JSON.
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

// say appends text to the open text or reasoning part.
func (d *decoder) say(a *answer, text string) { d.append(a, a.part(), event.Text, text) }

// input appends text to the input of the last part, a tool.
func (d *decoder) input(a *answer, text string) { d.append(a, a.part(), event.Input, text) }

// append appends text to a field of a part. An empty text emits nothing.
func (d *decoder) append(a *answer, part string, f event.Field, text string) {
	if text != "" {
		d.Emit(event.Event{Type: event.PartAppend, Message: a.key(), Part: part, Field: f, Text: text})
	}
}

// text appends to the open part if it has the given kind, and to a new one otherwise. An empty text must not end the open part, because the
// API sends signatures in parts with an empty text.
func (d *decoder) text(a *answer, kind string, raw json.RawMessage) error {
	if string(raw) == `""` || string(raw) == "null" {
		return nil // it has only a signature
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

// media adds a media part, which is complete at once. Above maxParts it is left out, because an answer is still useful without it.
func (d *decoder) media(a *answer, m *event.Media) {
	if d.begin(a, kindText, &event.Body{Kind: event.KindMedia, Media: m}) == nil {
		d.endPart(a)
	}
}

// call applies a functionCall: a complete call, or a piece of one. Only the first piece has the name; a call without args and
// partialArgs that will continue begins a call in pieces. An empty functionCall is the end of the open call, and it may also follow
// a call that has ended.
func (d *decoder) call(a *answer, c *call) error {
	if c.Name != "" || a.Open != kindCall {
		if c.Name == "" && c.Args == nil && c.Partial == nil {
			return nil
		}
		if err := d.begin(a, kindCall, &event.Body{Kind: event.KindTool, Name: c.Name, Call: c.ID}); err != nil {
			return err
		}
		a.Args = &args{}
		// A complete call ends at once, also one without arguments.
		if c.Args != nil || !c.Continue && c.Partial == nil {
			d.input(a, object(c.Args))
			a.Open = ""
			a.Args = nil
			d.Emit(event.Event{Type: event.PartEnd, Message: a.key(), Part: a.part()})
			return nil
		}
	}
	// A frame may have several values, or several pieces of one.
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

// code starts a tool for code that the server runs, with the code as its input.
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

// result applies the result of the code in the part before it. The API gives code and result no ids, so a result anywhere else is counted as
// unknown.
func (d *decoder) result(a *answer, outcome, output string) {
	if a.Open != kindCode {
		d.Unknowns.Add("result of no code")
		return
	}
	d.append(a, a.part(), event.Output, output)
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
