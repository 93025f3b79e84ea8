package openairesponses

import (
	"encoding/json"
	"strings"

	"github.com/leat-dev/leat/event"
)

// finishCall applies a complete call: its arguments and, if the server ran it, its result.
func (d *decoder) finishCall(o *open, in *item) error {
	key := toolKey(o.Index)
	input := text(in.Arguments)
	for _, s := range []string{text(in.Input), in.Code, compact(in.Action), compact(in.Queries), compact(in.Operation)} {
		if input == "" {
			input = s
		}
	}
	if input == "" && in.Type == "function_call" {
		input = "{}"
	}
	if input != "" {
		if err := d.setText(o.Index, key, event.KindTool, event.Input, &input); err != nil {
			return err
		}
	}
	switch {
	case in.Type == approvalRequest:
		return d.ask(o, in)
	case o.Searching && in.Status != "failed" && in.Status != "incomplete":
		return nil // its results arrive in a separate item
	case !in.runsOnServer():
		return nil // a client is to run it
	}
	o.Searching = false
	d.outcome(d.Key, key, in)
	d.endTool(o)
	if in.Type == "image_generation_call" && in.Result != "" {
		d.image(o, in)
	}
	return nil
}

// outcome says what a call gave that the server ran, and what became of it.
func (d *decoder) outcome(message, key string, in *item) {
	for _, s := range []string{text(in.Output), text(in.Outputs), text(in.Results)} {
		if s != "" {
			d.Emit(event.Event{Type: event.PartAppend, Message: message, Part: key, Field: event.Output, Text: s})
		}
	}
	b := &event.Body{State: event.PartDone}
	if reason := text(in.Error); reason != "" || in.Status == "failed" || in.Type == search && in.Status == "incomplete" {
		if reason == "" {
			reason = "the tool failed"
		}
		b.State, b.Error = event.PartFailed, &event.Error{Message: reason}
	}
	d.Emit(event.Event{Type: event.PartUpdate, Message: message, Part: key, Body: b})
}

// image shows what was drawn.
func (d *decoder) image(o *open, in *item) {
	format := in.Format
	if format == "" {
		format = "png"
	}
	key := toolKey(o.Index) + "/image"
	d.start(o, key, &event.Body{Kind: event.KindMedia, Media: &event.Media{URL: "data:image/" + format + ";base64," + in.Result, MIME: "image/" + format}})
	d.Emit(event.Event{Type: event.PartEnd, Message: d.Key, Part: key})
}

// returned handles the output of a call, which arrives in a separate item.
func (d *decoder) returned(in *item) {
	o := d.caller(in)
	if o == nil {
		d.Unknowns.Add("output of no call")
		return
	}
	d.endParts(o)
	key := toolKey(o.Index)
	output := text(in.Output)
	switch in.Type {
	case programOutput:
		output = in.Result
	case searchOutput:
		output = text(in.Tools)
	}
	if output != "" {
		d.Emit(event.Event{Type: event.PartAppend, Message: d.Key, Part: key, Field: event.Output, Text: output})
	}
	b := &event.Body{State: event.PartDone}
	if in.Status == "incomplete" || in.Status == "failed" {
		b.State, b.Error = event.PartFailed, &event.Error{Message: "the tool failed"}
	}
	d.Emit(event.Event{Type: event.PartUpdate, Message: d.Key, Part: key, Body: b})
	o.Searching = false
	d.endTool(o)
}

// caller finds the call that an output is of. A tool search that the server runs has no call id: its output is of the oldest search
// that has none yet.
func (d *decoder) caller(in *item) *open {
	if in.CallID == "" {
		if in.Type != searchOutput {
			return nil
		}
		for _, o := range d.Items {
			if o.Tool && o.Searching {
				return o
			}
		}
		return nil
	}
	for i := len(d.Items) - 1; i >= 0; i-- {
		if o := d.Items[i]; o.Tool && o.Call == in.CallID {
			return o
		}
	}
	return nil
}

// text is what a value says: a string as it is, the texts and logs of a list by lines, the message of an error, and
// anything else as JSON.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var pieces []struct {
		Text string `json:"text"`
		Logs string `json:"logs"`
	}
	if json.Unmarshal(raw, &pieces) == nil && len(pieces) > 0 {
		var lines []string
		for _, p := range pieces {
			if p.Text+p.Logs != "" {
				lines = append(lines, p.Text+p.Logs)
			}
		}
		if len(lines) == len(pieces) {
			return strings.Join(lines, "\n")
		}
	}
	var failed struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(raw, &failed) == nil && failed.Message != "" {
		return failed.Message
	}
	return compact(raw)
}
