package letta

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// state is all that a decoder holds.
type state struct {
	Frames   int  `json:"frames"`
	IsOver   bool `json:"over,omitempty"`  // V1: the turn has ended, and nothing more is read
	HasEnded bool `json:"whole,omitempty"` // a turn has ended

	// The turn at hand.
	Turn      string      `json:"turn,omitempty"` // key: its first run; V1 names none
	TurnOpen  bool        `json:"begun,omitempty"`
	Run       string      `json:"run,omitempty"`
	Seq       int64       `json:"seq,omitempty"`   // of the run's last chunk
	Runs      []string    `json:"runs,omitempty"`  // of the turn
	PastRuns  []runCursor `json:"past,omitempty"`  // how far each of them came, without the one at hand
	EndedRuns []string    `json:"ended,omitempty"` // runs of turns that have ended
	ActiveRun string      `json:"live,omitempty"`  // the run that is active, as the App Server says

	MessageCount int            `json:"messages,omitempty"` // given keys
	Key          string         `json:"key,omitempty"`      // of the message at hand; empty: none is open
	Group        string         `json:"group,omitempty"`    // its run and step
	PartCount    int            `json:"count,omitempty"`    // of its parts
	LastKind     event.PartKind `json:"last,omitempty"`     // kind of its last part
	Texts        []*text        `json:"texts,omitempty"`    // of the message at hand; the last may be open
	Tools        []*tool        `json:"tools,omitempty"`    // of the message at hand, and those that have not ended
	EndedCalls   []string       `json:"done,omitempty"`     // calls that have ended

	IsRetry bool `json:"retried,omitempty"` // the message at hand is told again, in a run of its own
	MayExit bool `json:"exiting,omitempty"` // headless: nothing came after an error, which ends the turn if the stream ends there

	Stop     string       `json:"stop,omitempty"`
	HasUsage bool         `json:"counted,omitempty"` // usage of the run at hand has come
	Usage    event.Usage  `json:"usage,omitzero"`
	Error    *event.Error `json:"error,omitempty"`

	UnknownTypes dialect.Unknown `json:"unknown,omitempty"`
}

// runCursor is how far a run came before the turn went on in another one.
type runCursor struct {
	Run      string `json:"run"`
	Seq      int64  `json:"seq,omitempty"`
	HasUsage bool   `json:"counted,omitempty"`
}

// text is a text or reasoning part.
type text struct {
	Message   string           `json:"message"`
	Part      string           `json:"part"`
	Kind      event.PartKind   `json:"kind"`
	ID        string           `json:"id,omitempty"`
	Otid      string           `json:"otid,omitempty"`
	IsOpen    bool             `json:"open,omitempty"`
	IsEmptied bool             `json:"emptied,omitempty"` // by a retry, which goes on in it
	Content   dialect.Snapshot `json:"shown,omitzero"`
	Buffer    dialect.Text     `json:"held,omitzero"`
}

// tool is a call.
type tool struct {
	Message   string           `json:"message"`
	Part      string           `json:"part"`
	Call      string           `json:"call"`
	Type      string           `json:"type"` // of the frame that told of it first
	Name      string           `json:"name,omitempty"`
	Origin    string           `json:"origin,omitempty"`  // id of the message that asked for approval
	Request   string           `json:"request,omitempty"` // open request for approval
	WasAsked  bool             `json:"asked,omitempty"`
	State     event.PartState  `json:"state,omitempty"`
	IsDenied  bool             `json:"denied,omitempty"`
	IsEnded   bool             `json:"over,omitempty"` // its part has ended
	Input     dialect.Snapshot `json:"input,omitzero"`
	Output    dialect.Snapshot `json:"output,omitzero"`
	Tail      string           `json:"tail,omitempty"`    // the end of an output that is streamed
	IsPartial bool             `json:"partial,omitempty"` // a piece of the output was not streamed
	Buffer    dialect.Text     `json:"held,omitzero"`
}

const (
	// maxParts bounds a message, and the calls that are open: nobody reads more, and whoever sends more means harm.
	maxParts = 2048
	// maxKnown is how many runs and calls are remembered after their end. What comes late comes within seconds.
	maxKnown = 64
	// maxTail is how many bytes of a streamed output are kept, to find its end in a later window of it. It is in the state of
	// every commit, so it is small; a few lines are enough to be unique in any output that isn't periodic.
	maxTail = 256
)

var (
	errNull  = errors.New("a part of the state is null")
	errParts = errors.New("too many parts")
	errLong  = errors.New("an id is too long")
)

// State implements [dialect.Decoder].
func (d *Decoder) State() ([]byte, error) { return json.Marshal(&d.state) }

// Restore implements [dialect.Decoder].
func (d *Decoder) Restore(b []byte) error {
	var st state
	if err := json.Unmarshal(b, &st); err != nil {
		return err
	}
	if slices.Contains(st.Texts, nil) || slices.Contains(st.Tools, nil) {
		return errNull
	}
	d.state = st
	return nil
}

// Cursor returns which run came last, and the seq_id of its last chunk: where a stream that broke is taken up.
func (d *Decoder) Cursor() (run string, seq int64) { return d.Run, d.Seq }

// IsFinished reports whether a turn has ended and none is open.
func (d *Decoder) IsFinished() bool { return d.HasEnded && !d.TurnOpen }

// IsOpen reports whether a turn is open of which something was said.
func (d *Decoder) IsOpen() bool { return d.TurnOpen }

// HasOpenTool reports whether a tool runs, or waits to be allowed.
func (d *Decoder) HasOpenTool() bool {
	return slices.ContainsFunc(d.Tools, func(t *tool) bool { return !t.IsEnded })
}

// HasCall reports whether a call has been in the stream.
func (d *Decoder) HasCall(call string) bool {
	return d.findTool(call) != nil || slices.Contains(d.EndedCalls, call)
}

// HasStopReason reports whether the stop reason of the step at hand has come. What V1 sends after it is usage and [DONE].
func (d *Decoder) HasStopReason() bool { return d.Stop != "" }

// ContinueTurn says that a turn that waited goes on, in another stream.
func (d *Decoder) ContinueTurn() { d.Stop, d.HasUsage = "", false }

// Approval is a tool that waits for a person.
type Approval struct {
	Request string // id of the request
	Call    string
	Tool    string
	Origin  string // id of the message that asked
}

// PendingApprovals returns the tools that wait for a person.
func (d *Decoder) PendingApprovals() []Approval {
	var approvals []Approval
	for _, t := range d.Tools {
		if t.Request != "" {
			approvals = append(approvals, Approval{t.Request, t.Call, t.Name, t.Origin})
		}
	}
	return approvals
}

// RecordAnswer notes the answer to a request, and returns what it changes for readers. The V1 API streams nothing for a call that
// was denied, so the answer is the only sign of it; the App Server tells what becomes of each call.
func (d *Decoder) RecordAnswer(request string, allowed bool) []event.Event {
	var ops []event.Event
	for _, t := range d.Tools {
		if t.Request != request {
			continue
		}
		t.Request, t.IsDenied = "", !allowed
		if d.isCode {
			continue
		}
		t.State = event.PartRunning
		if !allowed {
			t.State = event.PartDenied
		}
		ops = append(ops, event.Event{Type: event.PartUpdate, Turn: d.Turn, Message: t.Message, Part: t.Part, Body: &event.Body{State: t.State}})
	}
	return ops
}
