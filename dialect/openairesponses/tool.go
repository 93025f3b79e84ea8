package openairesponses

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/leat-dev/leat/event"
)

// finishCall applies a complete call: its arguments and, if the server ran it, its result. Each type of call has its own key for the input. A
// call of a client's tool stays open for an item with its output; without one it ends with the response, and without a state.
func (d *decoder) finishCall(o *open, in *item) error {
	key := toolKey(o.Index)
	input := cmp.Or(text(in.Arguments), text(in.Input), in.Code, compact(in.Action), compact(in.Queries), compact(in.Operation))
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
		return nil // its output arrives in a separate item
	case !in.runsOnServer():
		return nil
	}
	o.Searching = false // the item has the result itself
	d.outcome(d.Key, key, in)
	d.endTool(o)
	if in.Type == "image_generation_call" && in.Result != "" {
		d.image(o, in)
	}
	return nil
}

// outcome emits the output and the state of a call that the server ran. message and key name the part, which is that of a question if a
// person has approved the call.
func (d *decoder) outcome(message, key string, in *item) {
	failure := text(in.Error)
	if in.Status == "failed" || in.Type == search && in.Status == "incomplete" {
		failure = cmp.Or(failure, "the tool failed")
	}
	d.result(message, key, failure, text(in.Output), text(in.Outputs), text(in.Results))
}

// result emits the outputs of a call, of which empty ones are skipped, and its final state. The call has failed if failure isn't empty.
func (d *decoder) result(message, key, failure string, outputs ...string) {
	for _, s := range outputs {
		if s != "" {
			d.Emit(event.Event{Type: event.PartAppend, Message: message, Part: key, Field: event.Output, Text: s})
		}
	}
	b := &event.Body{State: event.PartDone}
	if failure != "" {
		b.State, b.Error = event.PartFailed, &event.Error{Message: failure}
	}
	d.Emit(event.Event{Type: event.PartUpdate, Message: message, Part: key, Body: b})
}

// image adds the image of an image generation call as media with a data: URL, after the tool's part. The API's default format is PNG.
func (d *decoder) image(o *open, in *item) {
	format := cmp.Or(in.Format, "png")
	key := toolKey(o.Index) + "/image"
	d.start(o, key, &event.Body{Kind: event.KindMedia, Media: &event.Media{URL: "data:image/" + format + ";base64," + in.Result, MIME: "image/" + format}})
	d.Emit(event.Event{Type: event.PartEnd, Message: d.Key, Part: key})
}

// returned applies the output of a call that arrives in a separate item. An output whose call isn't in the stream is counted as unknown.
func (d *decoder) returned(in *item) {
	o := d.caller(in)
	if o == nil {
		d.Unknowns.Add("output of no call")
		return
	}
	d.endParts(o)
	output, failure := text(in.Output), ""
	switch in.Type {
	case programOutput:
		output = in.Result
	case searchOutput:
		output = text(in.Tools)
	}
	if in.Status == "incomplete" || in.Status == "failed" {
		failure = "the tool failed"
	}
	d.result(d.Key, toolKey(o.Index), failure, output)
	o.Searching = false
	d.endTool(o)
}

// caller returns the call that an output belongs to, or nil. A tool search that the server runs has no call id: its output belongs
// to the oldest search without one.
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
	// The newest call wins, because an id may be used again after its call has ended.
	for i := len(d.Items) - 1; i >= 0; i-- {
		if o := d.Items[i]; o.Tool && o.Call == in.CallID {
			return o
		}
	}
	return nil
}

// text returns a value as text for readers: a string as it is, the texts and logs of a list as lines, the message of an error, and
// anything else as JSON. A list is shown as JSON if any of its entries has neither a text nor logs, so that nothing is lost.
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
