package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	recordings "github.com/leat-dev/leat/dialect/recording"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/service/capture"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// Step is something that happened in a turn, as [Gateway.Explain] tells it: what was sent or received, the events that came of
// it, and what they did to the visible text.
type Step struct {
	At   int64  `json:"at"`             // epoch milliseconds
	Sent string `json:"sent,omitempty"` // what went to the upstream
	// Frame is what came from it, with the name and the id that it has in server-sent events.
	Frame string        `json:"frame,omitempty"`
	Event string        `json:"event,omitempty"`
	ID    string        `json:"id,omitempty"`
	Said  []event.Event `json:"events,omitempty"`
	// Shown is what was appended to the visible text; Visible the whole of it, where it changed otherwise.
	Shown   string  `json:"shown,omitempty"`
	Visible *string `json:"visible,omitempty"`
	Error   string  `json:"error,omitempty"` // why it can't be decoded, or why the turn fails
	Lost    int64   `json:"lost,omitempty"`  // bytes that could not be kept
}

// Explanation is what a turn came to.
type Explanation struct {
	Turn    string        `json:"turn"`
	Agent   string        `json:"agent"`
	Kind    string        `json:"kind,omitempty"`
	Dialect string        `json:"dialect,omitempty"` // empty where the frames are of none that is known: then the events are those of the log, by their times
	Outcome event.Outcome `json:"outcome,omitempty"`
	Error   *event.Error  `json:"error,omitempty"`
	// Stored is the visible text as it is stored, but for what is masked; Same says that the frames come to it when they are decoded now.
	Stored string `json:"stored"`
	Same   bool   `json:"same"`
	Steps  []Step `json:"steps"`
}

// Explain tells step by step how a turn's bytes became what readers saw. Who may see it is as for [Gateway.WriteRecording].
func (g *Gateway) Explain(ctx context.Context, p Principal, turn string) (Explanation, error) {
	conversation, t, err := g.Turn(ctx, p, ActionInspect, turn)
	if err != nil {
		return Explanation{}, err
	}
	x := explainer{Explanation: Explanation{Turn: turn, Agent: t.Agent, Outcome: t.Outcome, Error: t.Error, Steps: []Step{}}}
	var tape bytes.Buffer
	if err := g.WriteRecording(ctx, p, turn, &tape); err != nil {
		return x.Explanation, err
	}
	var whole transcript.Transcript
	if err := g.foldAll(ctx, conversation, &whole); err != nil {
		return x.Explanation, err
	}
	a, _ := g.agent(t.Agent, agent.Principal{}) // of one that is gone the secrets are not known, and masked by their form
	x.Stored = capture.Mask(a.Secrets, whole.Visible(turn))
	if err := x.frames(&tape, g.cfg.Dialects); err != nil {
		return x.Explanation, fmt.Errorf("gateway: explain: %w", err)
	}
	if x.Dialect == "" {
		trace, err := g.journal.Trace(ctx, conversation, turn)
		if err != nil && !errors.Is(err, journal.ErrNotFound) {
			return x.Explanation, JournalError("explain", err)
		}
		x.committed(trace, &whole)
	} else {
		x.Same = x.visible == x.Stored
	}
	// What was sent and lost lies between the frames, by its time.
	err = g.cfg.Raw.Read(ctx, turn, func(e capture.Entry) error {
		switch e.Kind {
		case capture.Sent:
			x.insert(Step{At: e.At, Sent: string(e.Data)})
		case capture.Lost:
			x.insert(Step{At: e.At, Lost: e.N})
		case capture.Failed:
			x.insert(Step{At: e.At, Error: string(e.Data)})
		}
		return nil
	})
	if err != nil && !errors.Is(err, capture.ErrNotKept) { // it was there a moment ago
		return x.Explanation, err
	}
	return x.Explanation, nil
}

// foldAll folds a conversation's whole log.
func (g *Gateway) foldAll(ctx context.Context, conversation string, t *transcript.Transcript) error {
	return g.eachEvent(ctx, conversation, t.Apply)
}

// eachEvent calls f with the events of a conversation's log, in order.
func (g *Gateway) eachEvent(ctx context.Context, conversation string, f func(*event.Event) error) error {
	for after, more := int64(0), true; more; {
		r, err := g.journal.Read(ctx, conversation, after, pageBytes)
		if err != nil {
			return JournalError("read conversation", err)
		}
		for i := range r.Events {
			after = r.Events[i].Seq
			if err := f(&r.Events[i]); err != nil {
				return fmt.Errorf("gateway: read conversation: %w", err)
			}
		}
		more = r.More && len(r.Events) > 0
	}
	return nil
}

// explainer puts an explanation together.
type explainer struct {
	Explanation
	decoder dialect.Decoder
	mapper  *dialect.Mapper
	ids     int
	fold    transcript.Transcript
	visible string
}

// frames decodes the frames of a recording anew.
func (x *explainer) frames(tape io.Reader, known dialect.Registry) error {
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
		x.Kind = r.Head().Kind
		if name := r.Head().Dialect; x.decoder == nil && name != "" {
			if d, err := known.Lookup(name); err == nil {
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
	last := Step{}
	if n := len(x.Steps); n > 0 {
		last.At = x.Steps[n-1].At
	}
	ops, err := x.decoder.Close()
	if x.take(&last, ops, err); len(last.Said) > 0 || last.Error != "" {
		x.Steps = append(x.Steps, last)
	}
	return nil
}

func (x *explainer) begin(d dialect.Dialect) {
	x.Dialect, x.decoder = d.Name, d.Decoder()
	x.mapper = dialect.NewMapper(x.Turn, func() string { x.ids++; return fmt.Sprintf("m%d", x.ids) })
	x.apply(&event.Event{Type: event.TurnStart, Turn: x.Turn, Body: &event.Body{Agent: x.Agent}})
}

// take maps what a frame was decoded to, and tells what it did.
func (x *explainer) take(s *Step, ops []event.Event, err error) {
	events, merr := x.mapper.Map(ops, s.At)
	for i := range events {
		if aerr := x.apply(&events[i]); aerr != nil {
			merr = errors.Join(merr, aerr)
		}
	}
	s.Said = events
	if err = errors.Join(err, merr); err != nil {
		s.Error = err.Error()
	}
	x.show(s, x.fold.Visible(x.Turn))
}

func (x *explainer) show(s *Step, visible string) {
	switch rest, ok := strings.CutPrefix(visible, x.visible); {
	case ok:
		s.Shown = rest
	default:
		s.Visible = &visible
	}
	x.visible = visible
}

func (x *explainer) apply(e *event.Event) error {
	e.Seq = x.fold.Seq + 1
	return x.fold.Apply(e)
}

// committed tells of what the log has of the turn, where the frames can't be decoded: what was appended is cut out of the text as
// it is now.
func (x *explainer) committed(t journal.Trace, whole *transcript.Transcript) {
	x.Same = true
	ends := map[[3]string]int64{}
	for _, c := range t.Commits {
		s := Step{At: c.Arrival, Said: []event.Event{{Seq: c.Seq, Type: c.Type, Turn: x.Turn, Message: c.Message, Part: c.Part}}}
		e := &s.Said[0]
		e.Field = event.Field(c.Field)
		if m := whole.Message(c.Message); m != nil && c.End > 0 {
			for _, p := range m.Parts {
				key := [3]string{c.Message, c.Part, c.Field}
				if text := p.Text(e.Field); p.ID == c.Part && ends[key] < c.End && c.End <= int64(len(text)) {
					e.Offset, e.Text = ends[key], text[ends[key]:c.End]
					if ends[key] = c.End; e.Field == event.Text && (p.Kind == event.KindText || p.Kind == event.KindStatus) {
						s.Shown = e.Text
					}
				}
			}
		}
		x.insert(s)
	}
}

// insert puts a step where its time is: behind a frame of the same time, but in front of it where it was sent.
func (x *explainer) insert(s Step) {
	i := slices.IndexFunc(x.Steps, func(other Step) bool { return other.At > s.At || s.Sent != "" && other.At == s.At && other.Sent == "" })
	if i < 0 {
		i = len(x.Steps)
	}
	x.Steps = slices.Insert(x.Steps, i, s)
}
