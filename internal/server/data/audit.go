package data

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/service/audit"
)

// chunk is how many bytes of lines are collected before they are sent.
const chunk = 32 << 10

// lines writes JSON values as the lines of a stream.
type lines struct {
	st  *server.Stream
	buf []byte
	n   int // lines
}

// add writes a value as a line.
func (l *lines) add(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode line: %w", err)
	}
	return l.raw(b)
}

// raw writes a line that is encoded already. Lines are collected into chunks, because a flush per line
// would cost a system call and a packet each.
func (l *lines) raw(b []byte) error {
	l.n++
	if l.buf = append(append(l.buf, b...), '\n'); len(l.buf) < chunk {
		return nil
	}
	return l.flush()
}

// flush sends the collected lines. Call it at the end, and whenever no further line follows soon.
func (l *lines) flush() error {
	if len(l.buf) == 0 {
		return nil
	}
	err := l.st.Write(l.buf)
	l.buf = l.buf[:0]
	return err
}

// abort ends a stream so that the client can see that it is incomplete.
//
// The status 200 was sent already, so the only way to report the failure is to break the connection:
// http.ErrAbortHandler makes net/http close it without the last chunk, and clients of HTTP/1.1 and HTTP/2
// see an error. A client that disconnected itself is not logged.
func (d *surface) abort(operation string, err error) {
	if !errors.Is(err, context.Canceled) {
		d.s.Log().Error(operation+" cut", "error", err)
	}
	panic(http.ErrAbortHandler)
}

// audit sends the entries of the audit log, one per line. With follow, it also sends later ones.
//
// The log is flushed first, so that the response contains entries of requests that ended just before. With
// follow, Changed is called before Read, so no entry is missed. q.After advances with each read, so each
// entry is sent once. Empty lines serve as heartbeats.
func (d *surface) audit(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
	query := r.URL.Query()
	q := audit.Query{Tenant: query.Get("tenant"), Subject: query.Get("subject"), Conversation: query.Get("conversation")}
	follow, err := flag(r, "follow")
	if err != nil {
		return err
	}
	if q.Since, err = since(r); err != nil {
		return err
	}
	if v := query.Get("after"); v != "" {
		if q.After, err = strconv.ParseInt(v, 10, 64); err != nil || q.After < 0 {
			return server.Invalid("after is %q; it is the seq of an entry", v)
		}
	}
	log := d.gw.Audit()
	if err := log.Flush(r.Context()); err != nil {
		return err
	}
	st, err := d.s.OpenStream(w, r, http.StatusOK, server.NDJSON)
	if err != nil || st.Head() {
		return err
	}
	output := &lines{st: st}
	beat := time.NewTicker(st.Beat)
	defer beat.Stop()
	for {
		changed := log.Changed()
		var writeErr error // set once a write has failed
		q.After, err = log.Read(r.Context(), q, func(e audit.Entry) error {
			writeErr = output.add(e)
			return writeErr
		})
		if writeErr == nil && err == nil {
			writeErr = output.flush()
		}
		switch {
		case writeErr != nil:
			return nil
		case err != nil && r.Context().Err() == nil:
			d.abort("audit log", err)
		case err != nil || !follow:
			return nil
		}
		select {
		case <-changed:
		case <-beat.C:
			if st.Write([]byte("\n")) != nil { // readers of NDJSON skip an empty line
				return nil
			}
		case <-r.Context().Done():
			return nil
		}
	}
}
