package inspection

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/leat-dev/leat/dialect"
	recordings "github.com/leat-dev/leat/dialect/recording"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/capture"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// Step is one step of an [Explanation]: bytes that were sent or received, the events that they became, and how those changed the visible
// text.
type Step struct {
	At       int64  `json:"at"`             // epoch milliseconds
	Outgoing string `json:"sent,omitempty"` // what was sent to the upstream
	// Frame was received from the upstream. Event and ID are its fields if it is a server-sent event.
	Frame  string        `json:"frame,omitempty"`
	Event  string        `json:"event,omitempty"`
	ID     string        `json:"id,omitempty"`
	Events []event.Event `json:"events,omitempty"`
	// Shown was appended to the visible text. If the text changed in another way, Visible is all of it.
	Appended     string  `json:"shown,omitempty"`
	Visible      *string `json:"visible,omitempty"`
	Error        string  `json:"error,omitempty"` // why the frame can't be decoded, or why the turn failed
	MissingBytes int64   `json:"lost,omitempty"`  // bytes that were not captured
}

// Explanation says how a turn got its visible text.
type Explanation struct {
	Turn    string        `json:"turn"`
	Agent   string        `json:"agent"`
	Kind    string        `json:"kind,omitempty"`
	Dialect string        `json:"dialect,omitempty"` // empty if the dialect is unknown: then the events are those of the log, placed by their times
	Outcome event.Outcome `json:"outcome,omitempty"`
	Error   *event.Error  `json:"error,omitempty"`
	// Stored is the visible text in the log, with secrets masked. Same reports whether decoding the frames again results in it.
	StoredText string `json:"stored"`
	IsSame     bool   `json:"same"`
	Steps      []Step `json:"steps"`
}

// Explain returns, step by step, how the captured bytes of a turn became what readers saw. It takes the same rights, and has the same
// errors, as [Inspector.WriteRecording].
func (in *Inspector) Explain(ctx context.Context, p gateway.Principal, turn string) (Explanation, error) {
	conversation, t, err := in.gateway.Turn(ctx, p, gateway.ActionInspect, turn)
	if err != nil {
		return Explanation{}, err
	}
	// Steps is not nil, so that its JSON is an empty list for a turn without frames.
	x := explainer{Explanation: Explanation{Turn: turn, Agent: t.Agent, Outcome: t.Outcome, Error: t.Error, Steps: []Step{}}}
	var tape bytes.Buffer
	if err := in.writeRecording(ctx, turn, &tape); err != nil {
		return x.Explanation, err
	}
	// The fold of the whole log, and not of the turn alone, because later events can change the turn's messages: a truncate, or a
	// retraction.
	var final transcript.Transcript
	if err := in.eachEvent(ctx, conversation, final.Apply); err != nil {
		return x.Explanation, err
	}
	// The capture masks secrets in the frames, so the stored text is masked too before the two are compared.
	x.StoredText = capture.Mask(in.secretsOf(t.Agent), final.Visible(turn))
	if err := x.frames(&tape, in.dialects); err != nil {
		return x.Explanation, fmt.Errorf("inspection: decode capture of turn %s: %w", turn, err)
	}
	// Agents written in Go and recordings of other programs have no dialect that could be decoded again. The trace then says when
	// each event was committed.
	if x.Dialect == "" {
		trace, err := in.journal.Trace(ctx, conversation, turn)
		if err != nil && !errors.Is(err, journal.ErrNotFound) {
			return x.Explanation, gateway.JournalError("explain", err)
		}
		x.committed(trace, &final)
	} else {
		x.IsSame = x.visible == x.StoredText
	}
	// A recording has only received frames. The other entries are placed between them by their times.
	err = in.captures.Read(ctx, turn, func(e capture.Entry) error {
		switch e.Kind {
		case capture.KindSent:
			x.insert(Step{At: e.At, Outgoing: string(e.Data)})
		case capture.KindLost:
			x.insert(Step{At: e.At, MissingBytes: e.N})
		case capture.KindFailed:
			x.insert(Step{At: e.At, Error: string(e.Data)})
		}
		return nil
	})
	if err != nil && !errors.Is(err, capture.ErrNotKept) { // it was read above, and may have expired since
		return x.Explanation, err
	}
	return x.Explanation, nil
}

// explainer assembles an explanation.
type explainer struct {
	Explanation
	decoder dialect.Decoder
	mapper  *dialect.Mapper
	ids     int
	fold    transcript.Transcript
	visible string
}

// frames decodes the frames of a recording again.
func (x *explainer) frames(tape io.Reader, dialects dialect.Registry) error {
	r, err := recordings.NewReader(tape, "")
	if err != nil {
		return err
	}
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		// The head is known after the first frame was read. A dialect that this version doesn't know any more leaves the frames
		// without events.
		x.Kind = r.Head().Kind
		if name := r.Head().Dialect; x.decoder == nil && name != "" {
			if d, err := dialects.Lookup(name); err == nil {
				x.begin(d)
			}
		}
		step := Step{At: f.At, Frame: string(f.Data), Event: f.Event, ID: f.ID}
		if x.decoder != nil {
			ops, err := x.decoder.Decode(f.Frame)
			x.take(&step, ops, err)
		}
		x.Steps = append(x.Steps, step)
	}
	if x.decoder == nil {
		return nil
	}
	// Close may still end parts or report that the stream was cut. It has the time of the last frame, since nothing was received
	// for it.
	last := Step{}
	if n := len(x.Steps); n > 0 {
		last.At = x.Steps[n-1].At
	}
	ops, err := x.decoder.Close()
	if x.take(&last, ops, err); len(last.Events) > 0 || last.Error != "" {
		x.Steps = append(x.Steps, last)
	}
	return nil
}

// begin prepares the decoding. The ids of messages are m1, m2 and so on: the real ones are in the log, and a mapper would make
// others.
func (x *explainer) begin(d dialect.Dialect) {
	x.Dialect, x.decoder = d.Name, d.Decoder()
	x.mapper = dialect.NewMapper(x.Turn, func() string { x.ids++; return fmt.Sprintf("m%d", x.ids) })
	x.apply(&event.Event{Type: event.TurnStart, Turn: x.Turn, Body: &event.Body{Agent: x.Agent}})
}

// take applies the operations of a frame, and notes in the step what they changed.
func (x *explainer) take(s *Step, ops []event.Event, err error) {
	events, merr := x.mapper.Map(ops, s.At)
	for i := range events {
		if aerr := x.apply(&events[i]); aerr != nil {
			merr = errors.Join(merr, aerr)
		}
	}
	s.Events = events
	if err = errors.Join(err, merr); err != nil {
		s.Error = err.Error()
	}
	x.show(s, x.fold.Visible(x.Turn))
}

// show notes how the visible text changed: by text at its end, which is the usual case and short, or in another way, for instance
// by a replaced status.
func (x *explainer) show(s *Step, visible string) {
	switch appended, ok := strings.CutPrefix(visible, x.visible); {
	case ok:
		s.Appended = appended
	default:
		s.Visible = &visible
	}
	x.visible = visible
}

// apply folds one event. The seqs count from 1 in this explanation, and are not those of the log.
func (x *explainer) apply(e *event.Event) error {
	e.Seq = x.fold.Seq + 1
	return x.fold.Apply(e)
}

// committed adds steps for the events in the log, if the frames can't be decoded. The appended texts are cut out of the final text.
func (x *explainer) committed(t journal.Trace, final *transcript.Transcript) {
	x.IsSame = true
	// The trace has the length of each text after each commit. A text that was replaced by a shorter one can't be reconstructed
	// that way, and such steps show no text.
	ends := map[[3]string]int64{}
	for _, c := range t.Commits {
		s := Step{At: c.Arrival, Events: []event.Event{{Seq: c.Seq, Type: c.Type, Turn: x.Turn, Message: c.Message, Part: c.Part}}}
		e := &s.Events[0]
		e.Field = event.Field(c.Field)
		if m := final.Message(c.Message); m != nil && c.End > 0 {
			for _, p := range m.Parts {
				key := [3]string{c.Message, c.Part, c.Field}
				if text := p.Text(e.Field); p.ID == c.Part && ends[key] < c.End && c.End <= int64(len(text)) {
					e.Offset, e.Text = ends[key], text[ends[key]:c.End]
					if ends[key] = c.End; e.Field == event.Text && (p.Kind == event.KindText || p.Kind == event.KindStatus) {
						s.Appended = e.Text
					}
				}
			}
		}
		x.insert(s)
	}
}

// insert places a step by its time: after a frame of the same time, or before it if the step was sent.
func (x *explainer) insert(s Step) {
	// Times have a resolution of a millisecond. A request is put before the answer of the same millisecond.
	i := slices.IndexFunc(x.Steps, func(other Step) bool {
		return other.At > s.At || s.Outgoing != "" && other.At == s.At && other.Outgoing == ""
	})
	if i < 0 {
		i = len(x.Steps)
	}
	x.Steps = slices.Insert(x.Steps, i, s)
}
