package letta

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
)

// state is everything that a decoder remembers between frames. The journal stores it with every commit, so it has to stay small, and its
// JSON names are a file format.
type state struct {
	Frames   int  `json:"frames"`
	IsOver   bool `json:"over,omitempty"`  // V1: the turn has ended; later frames are ignored
	HasEnded bool `json:"whole,omitempty"` // at least one turn has ended

	// The current turn.
	Turn      string      `json:"turn,omitempty"` // key: the turn's first run; empty on V1, which has one turn per stream
	TurnOpen  bool        `json:"begun,omitempty"`
	Run       string      `json:"run,omitempty"`
	Seq       int64       `json:"seq,omitempty"`   // seq_id of the last chunk of Run
	Runs      []string    `json:"runs,omitempty"`  // the turn's runs
	PastRuns  []runCursor `json:"past,omitempty"`  // the positions in the turn's runs other than Run
	EndedRuns []string    `json:"ended,omitempty"` // runs of turns that have ended; their late frames are dropped
	ActiveRun string      `json:"live,omitempty"`  // App Server: the run that is active by the last status

	MessageCount int            `json:"messages,omitempty"` // messages started so far; the count is the next key
	Key          string         `json:"key,omitempty"`      // key of the open message; empty if no message is open
	Group        string         `json:"group,omitempty"`    // run and step of the open message
	PartCount    int            `json:"count,omitempty"`    // parts of the open message; the count is the next part's key
	LastKind     event.PartKind `json:"last,omitempty"`     // kind of its last part
	Texts        []*text        `json:"texts,omitempty"`    // text parts of the open message; only the last may be open
	Tools        []*tool        `json:"tools,omitempty"`    // tools of the open message, and older ones that have not ended
	EndedCalls   []string       `json:"done,omitempty"`     // tool calls that have ended

	IsRetry bool `json:"retried,omitempty"` // the open message continues with the next attempt, whose run is another one
	MayExit bool `json:"exiting,omitempty"` // headless: the last line was an error; if the stream ends here, the turn has failed

	Stop     string       `json:"stop,omitempty"`    // the last stop reason
	HasUsage bool         `json:"counted,omitempty"` // the usage of Run was received
	Usage    event.Usage  `json:"usage,omitzero"`    // sum over the turn's runs
	Error    *event.Error `json:"error,omitempty"`   // the last error, which counts if the turn fails

	UnknownTypes dialect.Unknown `json:"unknown,omitempty"`
}

// runCursor is the position in a run while another run of the turn is current. A run may be resumed or repeated later.
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
	IsEmptied bool             `json:"emptied,omitempty"` // a retry has removed its text; the next attempt continues in it
	Content   dialect.Snapshot `json:"shown,omitzero"`    // length and checksum of the text that readers have
	Buffer    dialect.Text     `json:"held,omitzero"`     // an incomplete character at the end of the last chunk
}

// tool is a tool call and its part.
type tool struct {
	Message   string           `json:"message"`
	Part      string           `json:"part"`
	Call      string           `json:"call"`
	Type      string           `json:"type"` // type of the message that started it; deltas of another type are complete calls
	Name      string           `json:"name,omitempty"`
	Origin    string           `json:"origin,omitempty"`  // id of the message with the call
	Request   string           `json:"request,omitempty"` // id of the open request for approval
	WasAsked  bool             `json:"asked,omitempty"`   // a request was opened at some time; there is never a second one
	State     event.PartState  `json:"state,omitempty"`
	IsDenied  bool             `json:"denied,omitempty"`
	IsEnded   bool             `json:"over,omitempty"` // its part has ended
	Input     dialect.Snapshot `json:"input,omitzero"`
	Output    dialect.Snapshot `json:"output,omitzero"`
	Tail      string           `json:"tail,omitempty"`    // the end of the output so far, to find it in a later window
	IsPartial bool             `json:"partial,omitempty"` // a piece of the output was not streamed, so later pieces are not appended
	Buffer    dialect.Text     `json:"held,omitzero"`     // an incomplete character at the end of the input so far
}

const (
	// maxParts limits the parts of a message, and the open tool calls. Real answers have far fewer.
	maxParts = 2048
	// maxKnown is how many runs and calls are remembered after their end. Late frames arrive within seconds.
	maxKnown = 64
	// maxTail limits tool.Tail, in bytes. The tail is stored with every commit, so it is small; a few lines are enough to be
	// unique in any output that isn't periodic.
	maxTail = 256
)

var (
	errNull  = errors.New("invalid state: a part is null")
	errParts = errors.New("too many parts")
	errLong  = errors.New("an id is too long")
)

// State implements [dialect.Decoder].
func (d *Decoder) State() ([]byte, error) { return decoding.State(&d.base, states, &d.state) }

// Restore implements [dialect.Decoder]. After an error the decoder is unchanged.
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

// Cursor returns the current run and the seq_id of its last chunk. A broken stream is resumed after it.
func (d *Decoder) Cursor() (run string, seq int64) { return d.Run, d.Seq }

// IsFinished reports whether a turn has ended and no other one is open.
func (d *Decoder) IsFinished() bool { return d.HasEnded && !d.TurnOpen }

// IsOpen reports whether a turn has started and not ended.
func (d *Decoder) IsOpen() bool { return d.TurnOpen }

// HasOpenTool reports whether a tool is running or waiting for approval.
func (d *Decoder) HasOpenTool() bool {
	return slices.ContainsFunc(d.Tools, func(t *tool) bool { return !t.IsEnded })
}

// HasCall reports whether a tool call has appeared in the stream.
func (d *Decoder) HasCall(call string) bool {
	return d.findTool(call) != nil || slices.Contains(d.EndedCalls, call)
}

// HasStopReason reports whether the current step's stop reason was received. V1 sends only usage and [DONE] after it.
func (d *Decoder) HasStopReason() bool { return d.Stop != "" }

// ContinueTurn prepares the decoder for the next stream of a turn, after approvals were sent or a run was rejected. It must be
// called before the first frame of that stream.
func (d *Decoder) ContinueTurn() { d.Stop, d.HasUsage = "", false }

// Approval is a tool call that waits for a user's decision.
type Approval struct {
	Request string // id of the request; on V1 the same as Call
	Call    string
	Tool    string
	Origin  string // id of the message with the call
}

// PendingApprovals returns the tool calls that wait for a user's decision, in the order of the stream.
func (d *Decoder) PendingApprovals() []Approval {
	var approvals []Approval
	for _, t := range d.Tools {
		if t.Request != "" {
			approvals = append(approvals, Approval{t.Request, t.Call, t.Name, t.Origin})
		}
	}
	return approvals
}

// RecordAnswer records the decision on a request, and returns the events that show it. The V1 API streams nothing about a
// denied call, so the decision itself changes the tool's state. The App Server streams what happens to each call, so there are
// no events then.
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
