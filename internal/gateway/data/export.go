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

// exportPage is how much of a log is in memory at once, in bytes.
const exportPage = 1 << 20

// Exporter writes down all that is stored of a subject. Its methods may be called from several goroutines.
type Exporter struct {
	gw          *gateway.Gateway
	journal     exportJournal
	collections []Collection
}

// NewExporter returns an exporter that knows of the collections.
func NewExporter(gw *gateway.Gateway, j exportJournal, collections []Collection) *Exporter {
	return &Exporter{gw: gw, journal: j, collections: collections}
}

// Check returns nil where the principal may export what is stored of the subject: the admin of everybody, a subject its
// own.
func (x *Exporter) Check(principal gateway.Principal, of Subject) error {
	if of.Subject == "" {
		return &gateway.Rejection{Reason: gateway.ReasonInvalid, Message: "export: a subject is needed"}
	}
	return gateway.Decide(principal, gateway.ActionRead, &journal.Summary{Tenant: of.Tenant, Owner: of.Subject})
}

// Export calls write with the lines of an export, without their ends; what it gets is only good until it returns. The
// export is whole when Export returns nil.
func (x *Exporter) Export(ctx context.Context, principal gateway.Principal, of Subject, write func(line []byte) error) error {
	if err := x.Check(principal, of); err != nil {
		return err
	}
	err := x.gw.Audit().Record(ctx, audit.Entry{Action: "export", Actor: gateway.Actor(ctx, principal), Tenant: of.Tenant, Subject: of.Subject})
	if err != nil {
		return err
	}
	o := &output{write: write}
	o.line(header{Type: lineExport, Version: Version, At: time.Now().UnixMilli(), Subject: of})
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

// output writes lines until there is an error.
type output struct {
	write func([]byte) error
	buf   []byte
	n     Counts
	err   error
}

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

// conversations writes those that the subject owns, each once. They are listed by their last change, so that one in which
// something happens meanwhile may move to where the list was read before: it is read until there is none that was missed.
func (x *Exporter) conversations(ctx context.Context, principal gateway.Principal, of Subject, o *output) error {
	begin := time.Now().UnixMilli()
	exported := map[string]bool{}
	for foundNew := true; foundNew; {
		foundNew = false
		err := eachOwned(ctx, x.journal, of, func(s *journal.Summary) error {
			if o.err == nil && !exported[s.ID] && s.Created <= begin { // those that are made meanwhile may have no end
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

// conversation writes one conversation as it is at one moment.
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

// guest writes what the subject said in conversations of others.
func (x *Exporter) guest(ctx context.Context, of Subject, o *output) error {
	operator := gateway.Principal{Admin: true} // what was checked is that these are its own words
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
