package leat

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// Mismatch reports that a reader's final text differs from the log's. It contains lengths and checksums, never the text.
type Mismatch struct {
	Client  string    `json:"client"` // kind of client; "go" if empty
	Turn    string    `json:"turn,omitempty"`
	Message string    `json:"message"`
	Part    string    `json:"part"`
	Field   string    `json:"field,omitempty"` // text, input, output or stderr; text if empty
	Seq     int64     `json:"seq"`             // of the part.end
	Have    event.Sum `json:"have"`            // of the reader's text
	Want    event.Sum `json:"want"`            // from the part.end event
}

// reportLimit is the timeout of a report. The reader fetches the snapshot that corrects the text only after it.
const reportLimit = 2 * time.Second

// ReportMismatch reports a mismatch to the gateway, which counts it in its metrics. [Client.Follow] calls it. A program that applies the
// frames of [Client.Stream] itself should call it if [transcript.Transcript.Apply] returns [transcript.ErrMismatch].
func (c *Client) ReportMismatch(ctx context.Context, id string, m Mismatch) error {
	m.Client = cmp.Or(m.Client, "go")
	return c.call(ctx, false, http.MethodPost, conversation(id, "/mismatches"), nil, m, nil)
}

// report reports the texts that differ from e, if err is a mismatch. It ignores errors, because the snapshot that follows corrects the
// text with or without the report.
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

// MismatchesOf returns a Mismatch for each field of the part whose text differs from the checksums of the part.end e.
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
