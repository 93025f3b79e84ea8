package openairesponses

import (
	"encoding/json"
	"strings"

	"github.com/leat-dev/leat/event"
)

// called takes a call that is whole: its arguments, and what it gave where the server ran it.
func (d *decoder) called(o *open, in *item) error {
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
		if err := d.whole(o.Index, key, event.KindTool, event.Input, &input); err != nil {
			return err
		}
	}
	if !served[in.Type] {
		return nil // a client is to run it
	}
	for _, s := range []string{text(in.Output), text(in.Outputs), text(in.Results)} {
		if s != "" {
			d.Emit(event.Event{Type: event.PartAppend, Message: d.Key, Part: key, Field: event.Output, Text: s})
		}
	}
	b := &event.Body{State: event.PartDone}
	if reason := text(in.Error); reason != "" || in.Status == "failed" {
		if reason == "" {
			reason = "the tool failed"
		}
		b.State, b.Error = event.PartFailed, &event.Error{Message: reason}
	}
	d.Emit(event.Event{Type: event.PartUpdate, Message: d.Key, Part: key, Body: b})
	d.endTool(o)
	if in.Type == "image_generation_call" && in.Result != "" {
		d.image(o, in)
	}
	return nil
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

// returned takes what a client's tool gave, in an item of its own.
func (d *decoder) returned(in *item) {
	for i := len(d.Items) - 1; i >= 0; i-- {
		o := d.Items[i]
		if !o.Tool || o.Call == "" || o.Call != in.CallID {
			continue
		}
		d.settle(o)
		key := toolKey(o.Index)
		if s := text(in.Output); s != "" {
			d.Emit(event.Event{Type: event.PartAppend, Message: d.Key, Part: key, Field: event.Output, Text: s})
		}
		b := &event.Body{State: event.PartDone}
		if in.Status == "incomplete" || in.Status == "failed" {
			b.State, b.Error = event.PartFailed, &event.Error{Message: "the tool failed"}
		}
		d.Emit(event.Event{Type: event.PartUpdate, Message: d.Key, Part: key, Body: b})
		d.endTool(o)
		return
	}
	d.Seen.Add("output of no call")
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
