package wecom

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/leat-dev/leat/internal/channel"
)

// record is what a delivery stores: the state of the engine, and what is needed to continue the stream. The engine can't store the
// latter as the id of a message, because a process may end before it knows the id.
type record struct {
	State json.RawMessage `json:"state"`
	// Request and AskedAt are those of the person's message. Request is empty if the delivery has no stream.
	Request string    `json:"request,omitempty"`
	AskedAt time.Time `json:"askedAt,omitzero"`
	// IsBegun is set if the stream may show something, and IsFinishing if it may show the answer.
	IsBegun     bool `json:"begun,omitempty"`
	IsFinishing bool `json:"finishing,omitempty"`
}

// restore continues the stream of an interrupted delivery, and makes the engine store its state in a record.
func (t *chat) restore(m *channel.StreamMetadata) error {
	if m.State != nil {
		var r record
		if err := json.Unmarshal(m.State, &r); err != nil {
			return fmt.Errorf("wecom: state of a delivery: %w", err)
		}
		m.State, t.state, t.stream = r.State, r.State, nil
		if r.Request != "" {
			t.stream = t.c.newStream(callback{r.Request, r.AskedAt})
			t.stream.isBegun, t.stream.isFinishing, t.stream.isUnsure = r.IsBegun, r.IsFinishing, r.IsFinishing
		}
	}
	t.save = m.Save
	m.Save = func(ctx context.Context, state any) (err error) {
		if t.state, err = json.Marshal(state); err != nil {
			return err
		}
		return t.store(ctx)
	}
	return nil
}

// store stores the record. A single message has none.
func (t *chat) store(ctx context.Context) error {
	if t.save == nil {
		return nil
	}
	r := record{State: t.state}
	if s := t.stream; s != nil {
		// The engine stores its state before it creates a message, so an update of the stream may follow.
		r.IsBegun = s.isBegun || t.c.options.Streaming
		r.Request, r.AskedAt, r.IsFinishing = s.request, s.askedAt, s.isFinishing
	}
	return t.save(ctx, r)
}
