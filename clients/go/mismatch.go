package leat

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// Mismatch says that a final text that a reader holds is not the log's. It holds no text.
type Mismatch struct {
	Client  string    `json:"client"` // the kind of the program; empty is "go"
	Turn    string    `json:"turn,omitempty"`
	Message string    `json:"message"`
	Part    string    `json:"part"`
	Field   string    `json:"field,omitempty"` // text, input, output or stderr; empty is text
	Seq     int64     `json:"seq"`             // of the part.end
	Have    event.Sum `json:"have"`            // of the text that is held
	Want    event.Sum `json:"want"`            // what the part.end says
}

// reportLimit bounds how long a reader waits for its report to be taken; the text is mended by a snapshot after it.
const reportLimit = 2 * time.Second

// ReportMismatch tells the gateway of a mismatch, which counts it. [Client.Follow] does so by itself; programs that fold
// the frames of [Client.Stream] on their own call it where their fold returns [transcript.ErrMismatch].
func (c *Client) ReportMismatch(ctx context.Context, id string, m Mismatch) error {
	if m.Client == "" {
		m.Client = "go"
	}
	return c.call(ctx, false, http.MethodPost, conversation(id, "/mismatches"), nil, m, nil)
}

// report tells of the event that did not fit, if that was because of a text. It is best effort: a gateway that takes no
// report is no worse a source of text.
func (c *Client) report(ctx context.Context, id string, t *transcript.Transcript, e *event.Event, err error) {
	if !errors.Is(err, transcript.ErrMismatch) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reportLimit)
	defer cancel()
	for _, m := range MismatchesOf(t, e) {
		_ = c.ReportMismatch(ctx, id, m)
	}
}

// MismatchesOf lists in which fields the transcript differs from what a part.end says of them.
func MismatchesOf(t *transcript.Transcript, e *event.Event) (mismatches []Mismatch) {
	m := t.Message(e.Message)
	if m == nil || e.Type != event.PartEnd {
		return nil
	}
	p := m.Part(e.Part)
	if p == nil {
		return nil
	}
	for _, f := range transcript.Fields {
		if want, ok := e.Get().Sums[f.Name()]; ok {
			if have := p.Sum(f); have != want {
				mismatches = append(mismatches, Mismatch{Turn: e.Turn, Message: e.Message, Part: e.Part, Field: f.Name(), Seq: e.Seq, Have: have, Want: want})
			}
		}
	}
	return mismatches
}
