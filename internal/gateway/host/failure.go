package host

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/leat-dev/leat/event"
	printed "github.com/leat-dev/leat/internal/base/process"
)

// The names of the log's event and of the health signal are those of built-in channels, as is the time for which the signal is shown.
const (
	eventStreamFailed    = "stream.failed"
	signalDeliveryFailed = "delivery.failed"
	signalLife           = 10 * time.Minute
)

const (
	// maxFailure bounds the error of a failed delivery, in bytes, since it is shown to operators and sent to webhooks.
	maxFailure = 1 << 10
	// reportLimit bounds the time to store the notices for webhooks. The process may end meanwhile.
	reportLimit = 10 * time.Second
)

// Failure is a delivery that a channel gave up.
type Failure struct {
	Channel, Chat, Turn           string // Turn is empty for a message that belongs to no turn
	Conversation, Tenant, Subject string // the conversation, and its owner
	Seq                           int64  // of the last event that the channel got for the chat
	Err                           error
	IsUnknown                     bool // it was possibly delivered
}

// record counts the failed deliveries of a channel.
type record struct {
	mu       sync.Mutex
	failures int
	last     error
	failedAt time.Time
}

// add counts a failure, which is the newest from now on.
func (r *record) add(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures++
	r.last, r.failedAt = err, time.Now()
}

// read returns the number of failures, and the newest of them with its time.
func (r *record) read() (failures int, failedAt time.Time, last error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failures, r.failedAt, r.last
}

// Signals returns the health signals of the channels: "delivery.failed" if a delivery has failed in the last ten minutes.
func (h *Host) Signals() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.channels {
		if _, at, _ := c.record.read(); !at.IsZero() && time.Since(at) < signalLife {
			return []string{signalDeliveryFailed}
		}
	}
	return nil
}

// parseFailed parses and checks a failed line.
func parseFailed(line []byte) (in failedLine, err error) {
	if err := json.Unmarshal(line, &in); err != nil {
		return in, err
	}
	if in.Error == "" {
		return in, errors.New("a failed line needs an error")
	}
	return in, event.CheckID("turn", in.Turn)
}

// failed records a delivery that the process gave up. A process may end after its line, so the report doesn't end with the session.
func (s *session) failed(ctx context.Context, in failedLine) {
	text := in.Error
	if in.IsUnknown {
		text = "possibly delivered: " + text
	}
	f := Failure{Channel: s.c.name, Chat: in.Chat, Turn: in.Turn, Err: errors.New(bounded(text)), IsUnknown: in.IsUnknown}
	s.c.record.add(f.Err)
	s.c.log.Error("delivery to a chat failed", "event", eventStreamFailed, "turn", f.Turn, "error", f.Err)
	t, b, ok := s.boundChat(in.Chat)
	if !ok || s.c.report == nil {
		return
	}
	owner := s.c.principalOf(b)
	f.Conversation, f.Tenant, f.Subject = b.Conversation, owner.Tenant, owner.Subject
	s.mu.Lock()
	_, f.Seq, _ = t.at.Parse()
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportLimit)
	defer cancel()
	if err := s.c.report(ctx, f); err != nil {
		s.c.log.Error("failed delivery could not be reported to webhooks", "error", err)
	}
}

// bounded returns the text of an error in one line of at most maxFailure bytes.
func bounded(text string) string {
	text = printed.Clean(text)
	if len(text) <= maxFailure {
		return text
	}
	const ellipsis = "…"
	return strings.ToValidUTF8(text[:maxFailure-len(ellipsis)], "") + ellipsis
}
