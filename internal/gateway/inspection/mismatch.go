package inspection

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/ratelimit"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/transcript"
)

// Mismatch is a client's report that a final text that it assembled is not the log's. It has no text, only sizes and checksums.
type Mismatch struct {
	Client  string    `json:"client"` // page, go, ts, or any other
	Turn    string    `json:"turn,omitempty"`
	Message string    `json:"message"`
	Part    string    `json:"part"`
	Field   string    `json:"field,omitempty"` // as on the wire; empty is text
	Seq     int64     `json:"seq"`             // of the part.end that the text was compared with
	Have    event.Sum `json:"have"`            // of the client's text
	Want    event.Sum `json:"want"`            // in the part.end
}

// mismatchRate bounds the reports of all clients together. A fault that affects every reader shows in the first reports.
var mismatchRate = ratelimit.Rate{Tokens: 120, Per: time.Minute}

// limiter bounds the reports of all clients together.
type limiter struct {
	mu     sync.Mutex
	bucket ratelimit.Bucket
}

// allow reports whether another report may be stored now.
func (l *limiter) allow() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.bucket.Take(time.Now(), mismatchRate)
	return ok
}

// Mismatch counts and logs a client's report. Above 120 reports a minute, it returns a *Rejection for [gateway.ReasonFull].
func (in *Inspector) Mismatch(ctx context.Context, p gateway.Principal, conversation string, m Mismatch) error {
	if _, err := in.gateway.Conversation(ctx, p, gateway.ActionRead, conversation); err != nil {
		return err
	}
	field := cmp.Or(m.Field, event.Text.Name())
	isField := slices.ContainsFunc(transcript.Fields[:], func(f event.Field) bool { return f.Name() == field })
	switch {
	case !isField:
		return invalid("mismatch: no part has a field %q", m.Field)
	case m.Message == "" || m.Part == "":
		return invalid("mismatch: a message and a part are needed")
	case m.Have.Length < 0 || m.Want.Length < 0 || m.Seq < 0:
		return invalid("mismatch: a length or seq below 0")
	case m.Have == m.Want:
		return invalid("mismatch: have and want are the same")
	}
	for name, v := range map[string]string{"turn": m.Turn, "message": m.Message, "part": m.Part, "client": m.Client} {
		if err := event.CheckID(name, v); err != nil {
			return invalid("%v", err)
		}
	}
	if !in.reports.allow() {
		return &gateway.Rejection{Reason: gateway.ReasonFull, Message: "too many mismatches were reported in the last minute"}
	}
	client := in.metrics.Mismatch(m.Client, field)
	in.log.Warn("client reports a text that differs", "conversation", conversation, "turn", m.Turn, "message", m.Message, "part", m.Part, "field", field,
		"seq", m.Seq, "client", client, "have_bytes", m.Have.Length, "have_crc", m.Have.CRC, "want_bytes", m.Want.Length, "want_crc", m.Want.CRC)
	return nil
}

// invalid returns the refusal of a report with wrong fields.
func invalid(format string, args ...any) *gateway.Rejection {
	return &gateway.Rejection{Reason: gateway.ReasonInvalid, Message: fmt.Sprintf(format, args...)}
}
