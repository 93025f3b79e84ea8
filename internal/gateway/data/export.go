// Exporting all data of a person as a stream of JSON lines.

package data

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/audit"
	"github.com/leat-dev/leat/internal/store/journal"
)

// exportPage is how much of a log is read into memory at once, in bytes. It bounds the memory of an export, except for larger single events.
const exportPage = 1 << 20

// Exporter writes all data of a subject. Its methods may be called from several goroutines.
type Exporter struct {
	gw          *gateway.Gateway
	journal     exportJournal
	collections []Collection
}

// NewExporter returns an exporter of the gateway's conversations and of the collections that are not private. Values of a collection are
// exported as they are stored, so they must be JSON.
func NewExporter(gw *gateway.Gateway, j exportJournal, collections []Collection) *Exporter {
	return &Exporter{gw: gw, journal: j, collections: collections}
}

// Check returns nil if the principal may export the subject's data. The admin may export everyone's, and a subject its own. HTTP handlers
// call it before they write the header of the response; Export calls it again.
func (x *Exporter) Check(principal gateway.Principal, of Subject) error {
	if of.Subject == "" {
		return &gateway.Rejection{Reason: gateway.ReasonInvalid, Message: "export: a subject is needed"}
	}
	return gateway.Decide(principal, gateway.ActionRead, &journal.Summary{Tenant: of.Tenant, Owner: of.Subject})
}

// Export calls write for each line of the export, without the newline. The slice is only valid until write returns. The export
// is recorded in the audit log before the first line. It is complete only if Export returns nil.
//
// The lines are a header, the subject's conversations with their events, the subject's messages in conversations of others, the values
// of the collections, and the totals. The first error of write ends the export: output skips the later lines and keeps that error.
func (x *Exporter) Export(ctx context.Context, principal gateway.Principal, of Subject, write func(line []byte) error) error {
	if err := x.Check(principal, of); err != nil {
		return err
	}
	err := x.gw.Audit().Record(ctx, audit.Entry{Action: "export", Actor: gateway.Actor(ctx, principal), Tenant: of.Tenant, Subject: of.Subject})
	if err != nil {
		return err
	}
	o := &output{write: write}
	o.line(header{Type: lineExport, Version: version, At: time.Now().UnixMilli(), Subject: of})
	err = x.conversations(ctx, principal, of, o)
	if err == nil && o.err == nil {
		err = x.guest(ctx, of, o)
	}
	for i := range x.collections {
		c := &x.collections[i]
		if err != nil || o.err != nil || c.Private {
			continue
		}
		err = c.forEach(ctx, x.journal, of.Tenant, of.Subject, func(kv journal.KeyValue) error {
			o.n.Other++
			o.line(collectionLine{Type: c.Name, Data: kv.Value})
			return o.err
		})
	}
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	o.line(end{lineEnd, o.n})
	return o.err
}

// output writes lines until the first error, which stays in err. Later lines are dropped, so callers need to check err only once per loop.
type output struct {
	write func([]byte) error
	buf   []byte
	n     totals
	err   error
}

// line writes a value as one line of JSON. After an error it writes nothing, so callers check the error once at the end.
func (o *output) line(v any) {
	if o.err != nil {
		return
	}
	b, err := json.Marshal(v)
	if err == nil {
		err = o.write(b)
	}
	o.err = err
}

// conversations writes each conversation that the subject owns, once. Only the ids of exported conversations are held in memory.
// The list is ordered by the last change, so a conversation that changes during the export can move to a page that was read
// already. The list is therefore read again until it contains nothing new. Conversations created after the start are skipped, or
// the export might never end.
func (x *Exporter) conversations(ctx context.Context, principal gateway.Principal, of Subject, o *output) error {
	begin := time.Now().UnixMilli()
	exported := map[string]bool{}
	for foundNew := true; foundNew; {
		foundNew = false
		err := eachOwned(ctx, x.journal, of, func(s *journal.Summary) error {
			if o.err == nil && !exported[s.ID] && s.Created <= begin {
				exported[s.ID], foundNew = true, true
				o.err = x.conversation(ctx, principal, s.ID, o)
			}
			return o.err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// conversation writes one conversation as of one moment. Compaction is paused meanwhile, so that the events up to the head
// don't change. Later events are left out. If the conversation is deleted meanwhile, a "gone" line marks its earlier lines as invalid,
// and they don't count in the totals.
func (x *Exporter) conversation(ctx context.Context, principal gateway.Principal, id string, o *output) error {
	s, release, err := x.gw.PauseCompaction(ctx, principal, id)
	if errors.Is(err, gateway.ErrNotFound) {
		return nil // deleted since it was listed
	}
	if err != nil {
		return err
	}
	defer release()
	before := o.n
	o.n.Conversations++
	o.line(conversationOf(&s))
	for after := int64(0); after < s.Head && o.err == nil; {
		r, err := x.journal.Read(ctx, id, after, exportPage)
		if errors.Is(err, journal.ErrDeleted) {
			o.n = before
			o.line(deletedLine{lineGone, id})
			return o.err
		}
		if err != nil {
			return err
		}
		for i := range r.Events {
			e := r.Events[i]
			if after = e.Seq; after > s.Head || o.err != nil {
				break
			}
			o.n.Events++
			if o.buf, o.err = appendEvent(o.buf[:0], e); o.err == nil {
				o.err = o.write(o.buf)
			}
		}
		if !r.HasMore {
			break
		}
	}
	return o.err
}

// guest writes the subject's messages in conversations of other users. What others wrote there is not the subject's data, and is left out.
func (x *Exporter) guest(ctx context.Context, of Subject, o *output) error {
	operator := gateway.Principal{Admin: true} // Check has passed, and only the subject's own messages are read
	_, wrote, err := x.gw.Guests().Conversations(ctx, operator, of.Tenant, of.Subject)
	for _, id := range wrote {
		if err != nil {
			break
		}
		err = x.gw.Guests().EventsBy(ctx, operator, id, of.Subject, func(e *event.Event) error {
			entry := *e
			entry.Seq, entry.MergedFrom = 0, 0
			o.n.Other++
			o.line(message{lineMessage, id, entry})
			return o.err
		})
		if errors.Is(err, gateway.ErrNotFound) {
			err = nil // deleted meanwhile
		}
	}
	return err
}
