package gateway

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/ratelimit"
	"github.com/leat-dev/leat/transcript"
)

// Mismatch is a client's report that a final text of its own is not the log's. It holds no text, only sizes and checksums.
type Mismatch struct {
	Client  string    `json:"client"` // page, go, ts, or any other
	Turn    string    `json:"turn,omitempty"`
	Message string    `json:"message"`
	Part    string    `json:"part"`
	Field   string    `json:"field,omitempty"` // as on the wire; empty is text
	Seq     int64     `json:"seq"`             // of the part.end that did not fit
	Have    event.Sum `json:"have"`            // what the client holds
	Want    event.Sum `json:"want"`            // what the part.end says
}

// clients are the kinds that are told apart.
var clients = []string{"page", "go", "ts"}

// mismatchRate bounds the reports that are taken: a fault that hits all readers at once is known by the first.
var mismatchRate = ratelimit.Rate{Tokens: 120, Per: time.Minute}

// reports bounds the reports of all clients together.
type reports struct {
	mu     sync.Mutex
	bucket ratelimit.Bucket
}

func (r *reports) take() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.bucket.Take(time.Now(), mismatchRate)
	return ok
}

// Mismatch counts and logs a client's report. Beyond 120 a minute they are refused with [ReasonFull].
func (g *Gateway) Mismatch(ctx context.Context, p Principal, conversation string, m Mismatch) error {
	if _, err := g.Conversation(ctx, p, ActionRead, conversation); err != nil {
		return err
	}
	field := m.Field
	if field == "" {
		field = event.Text.Name()
	}
	known := slices.ContainsFunc(transcript.Fields[:], func(f event.Field) bool { return f.Name() == field })
	switch {
	case !known:
		return reject(ReasonInvalid, "mismatch: no part has a field %q", m.Field)
	case m.Message == "" || m.Part == "":
		return reject(ReasonInvalid, "mismatch: a message and a part are needed")
	case m.Have.Length < 0 || m.Want.Length < 0 || m.Seq < 0:
		return reject(ReasonInvalid, "mismatch: a length or seq below 0")
	case m.Have == m.Want:
		return reject(ReasonInvalid, "mismatch: have and want are the same")
	}
	for name, v := range map[string]string{"turn": m.Turn, "message": m.Message, "part": m.Part, "client": m.Client} {
		if err := event.CheckID(name, v); err != nil {
			return reject(ReasonInvalid, "%v", err)
		}
	}
	if !g.reports.take() {
		return reject(ReasonFull, "enough mismatches were reported for now")
	}
	client := m.Client
	if !slices.Contains(clients, client) {
		client = other
	}
	g.cfg.Metrics.mismatches.WithLabelValues(client, field).Inc()
	g.log.Warn("a client holds another text", "conversation", conversation, "turn", m.Turn, "message", m.Message, "part", m.Part, "field", field,
		"seq", m.Seq, "client", client, "have_bytes", m.Have.Length, "have_crc", m.Have.CRC, "want_bytes", m.Want.Length, "want_crc", m.Want.CRC)
	return nil
}
