// The JSON of batches, snapshots and pages, as docs/protocol.md specifies it, in both directions.

package feed

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// frame is the JSON form of a batch. The gateway only writes it; programs that test the gateway parse it.
type frame struct {
	Type         string `json:"type"` // "snapshot" or "batch"
	Conversation string `json:"conversation"`
	Cursor       Cursor `json:"cursor"`

	// Only in a snapshot:
	Epoch   string `json:"epoch"`
	Reset   bool   `json:"reset"`
	FirstID string `json:"first"` // id of the window's first message, or ""
	// Earlier says that there are older messages, available as pages.
	Earlier    bool                 `json:"earlier"`
	Transcript *transcript.Snapshot `json:"transcript"`

	// Only in a batch:
	Seq    int64         `json:"seq"` // of the cursor
	Events []event.Event `json:"events"`
}

// ParseFrame parses a frame. It fails for unknown types, and for a snapshot without a transcript.
func ParseFrame(b []byte) (*frame, error) {
	f := &frame{}
	if err := json.Unmarshal(b, f); err != nil {
		return nil, fmt.Errorf("feed: frame: %w", err)
	}
	switch f.Type {
	case "snapshot":
		if f.Transcript == nil {
			return nil, fmt.Errorf("feed: frame: snapshot without transcript")
		}
		f.Transcript.Earlier, f.Seq = f.Earlier, f.Transcript.Seq
	case "batch":
	default:
		return nil, fmt.Errorf("feed: frame: type %q is unknown", f.Type)
	}
	return f, nil
}

// Apply folds the frame into a client's transcript. After an error the client reads again without a cursor.
func (f *frame) Apply(t *transcript.Transcript) error {
	return (&Batch{Reset: f.Type == "snapshot", Snapshot: f.Transcript, Events: f.Events}).Apply(t)
}

// Page is a stretch of older messages. Its Seq is the head of the log when it was read. A page only fits a transcript
// at the same epoch.
type Page struct {
	Conversation string
	Epoch        string
	*transcript.Snapshot
}

// AppendJSON appends the page as JSON: {"conversation", "epoch", "seq", "first", "earlier", "transcript"}.
func (p *Page) AppendJSON(w []byte) ([]byte, error) {
	w = event.AppendString(append(w, `{"conversation":`...), p.Conversation)
	w = event.AppendString(append(w, `,"epoch":`...), p.Epoch)
	w = strconv.AppendInt(append(w, `,"seq":`...), p.Seq, 10)
	w, err := appendSnapshot(w, p.Snapshot)
	if err != nil {
		return nil, fmt.Errorf("feed: encode page: %w", err)
	}
	return w, nil
}

// appendSnapshot appends the fields that end a snapshot and a page: first, earlier and transcript. The first two are omitted if they
// have their zero values.
func appendSnapshot(w []byte, s *transcript.Snapshot) ([]byte, error) {
	if firstID := s.FirstMessage(); firstID != "" {
		w = event.AppendString(append(w, `,"first":`...), firstID)
	}
	if s.Earlier {
		w = append(w, `,"earlier":true`...)
	}
	w, err := s.AppendJSON(append(w, `,"transcript":`...))
	return append(w, '}'), err
}

// MarshalJSON is AppendJSON for encoding/json.
func (p *Page) MarshalJSON() ([]byte, error) { return p.AppendJSON(nil) }

// UnmarshalJSON parses the output of AppendJSON. It requires a transcript, and ignores unknown fields.
func (p *Page) UnmarshalJSON(b []byte) error {
	var w struct {
		Conversation string               `json:"conversation"`
		Epoch        string               `json:"epoch"`
		Earlier      bool                 `json:"earlier"`
		Transcript   *transcript.Snapshot `json:"transcript"`
	}
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("feed: page: %w", err)
	}
	if w.Transcript == nil {
		return fmt.Errorf("feed: page without transcript")
	}
	w.Transcript.Earlier = w.Earlier
	*p = Page{Conversation: w.Conversation, Epoch: w.Epoch, Snapshot: w.Transcript}
	return nil
}

// Add prepends the page to a reader's transcript, as [transcript.Transcript.AddPage] does. cursor is the reader's position. It
// returns false if the page doesn't fit, because the transcript has changed since; the reader then requests the page again.
func (p *Page) Add(t *transcript.Transcript, before string, cursor Cursor) bool {
	epoch, seq, ok := cursor.Parse()
	return ok && epoch == p.Epoch && t.AddPage(p.Snapshot, before, seq)
}
