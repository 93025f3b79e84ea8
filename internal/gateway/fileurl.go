package gateway

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"slices"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/store/files"
	"github.com/leat-dev/leat/transcript"
)

// Media in a log name a file of the store by the path where it is served. What comes with its bytes in a data URL is stored,
// and named like that, before it is written: logs stay small, and a picture goes to those who look at it.

// fileURL is the path where a file is served.
func (g *Gateway) fileURL(conversation, id string) string {
	return g.cfg.BasePath + "/api/conversations/" + url.PathEscape(conversation) + "/files/" + id
}

// fileID is the id of the conversation's file that a URL names; empty where it names none. What stands before the path is
// not looked at: the gateway may have been reached by another name when it was written.
func fileID(u, conversation string) string {
	_, rest, ok := strings.Cut(u, "/api/conversations/"+url.PathEscape(conversation)+"/files/")
	if !ok || !files.ValidID(rest) {
		return ""
	}
	return rest
}

// filesOf lists the conversation's files that parts show, each once.
func filesOf(parts []event.Part, conversation string) (ids []string) {
	for _, p := range parts {
		if p.Media == nil {
			continue
		}
		if id := fileID(p.Media.URL, conversation); id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// onlyIn lists the files that the first messages show and the others don't.
func onlyIn(gone, kept []*transcript.Message, conversation string) (ids []string) {
	shown := func(all []*transcript.Message) map[string]bool {
		ids := map[string]bool{}
		for _, m := range all {
			for _, p := range m.Parts {
				if p.Media != nil {
					ids[fileID(p.Media.URL, conversation)] = true
				}
			}
		}
		delete(ids, "")
		return ids
	}
	keep := shown(kept)
	for id := range shown(gone) {
		if !keep[id] {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// errNotInline says that a URL holds no bytes.
var errNotInline = errors.New("no data URL")

// inline reads the bytes out of a data URL (RFC 2397), in base64 or as they are.
func inline(u string) (mime string, r io.Reader, err error) {
	rest, ok := strings.CutPrefix(u, "data:")
	if !ok {
		return "", nil, errNotInline
	}
	head, data, ok := strings.Cut(rest, ",")
	if !ok {
		return "", nil, errNotInline
	}
	if mime, ok = strings.CutSuffix(head, ";base64"); ok {
		enc := base64.StdEncoding
		if !strings.HasSuffix(data, "=") && len(data)%4 != 0 {
			enc = base64.RawStdEncoding
		}
		return mime, base64.NewDecoder(enc, strings.NewReader(data)), nil
	}
	plain, err := url.PathUnescape(data)
	if err != nil {
		return "", nil, errNotInline
	}
	return mime, strings.NewReader(plain), nil
}

// storeInline stores the bytes that media bring along, and returns the media without them. Media of another kind comes back
// as it is.
func (w *writer) storeInline(ctx context.Context, p Principal, m event.Media) (event.Media, error) {
	if w.g.cfg.Files == nil {
		return m, nil
	}
	mime, r, err := inline(m.URL)
	if err != nil {
		return m, nil
	}
	if m.MIME != "" {
		mime = m.MIME
	}
	return w.putFile(ctx, p, agent.File{Name: m.Name, MIME: mime, Alt: m.Alt}, r, 0)
}

// withoutInline returns a command whose message names its files in place of holding them.
func (w *writer) withoutInline(ctx context.Context, p Principal, c Command) (Command, error) {
	if c.Message == nil || w.g.cfg.Files == nil {
		return c, nil
	}
	m := *c.Message
	m.Parts = slices.Clone(m.Parts)
	for i, part := range m.Parts {
		if part.Media == nil || !strings.HasPrefix(part.Media.URL, "data:") {
			continue
		}
		media, err := w.storeInline(ctx, p, *part.Media)
		if err != nil {
			return c, err
		}
		m.Parts[i].Media = &media
	}
	c.Message = &m
	return c, nil
}

// PutFile implements [agent.FileSink].
func (s *sink) PutFile(ctx context.Context, f agent.File, r io.Reader) (event.Media, error) {
	return s.writer.putFile(ctx, s.speaker(), f, r, 0)
}

// speaker is on whose behalf the turn's agent brings files.
func (s *sink) speaker() Principal {
	return Principal{Tenant: s.input.Principal.Tenant, Subject: s.input.Principal.Subject}
}

// FindFile implements [agent.FileSink].
func (s *sink) FindFile(ctx context.Context, origin string) (event.Media, bool, error) {
	return s.writer.findFile(ctx, origin)
}

// findFile returns what was stored with an origin.
func (w *writer) findFile(ctx context.Context, origin string) (event.Media, bool, error) {
	id, err := w.g.journal.Get(ctx, journalkey.FileOrigin(w.id, origin))
	if err == nil {
		var f io.Closer
		var m event.Media
		if f, m, err = w.g.openFile(ctx, w.id, string(id)); err == nil {
			return m, true, f.Close()
		}
	} else {
		err = journalError("look up file", err)
	}
	if errors.Is(err, ErrNotFound) {
		return event.Media{}, false, nil
	}
	return event.Media{}, false, err
}

// OpenFile implements [agent.FileSink].
func (s *sink) OpenFile(ctx context.Context, m event.Media) (io.ReadCloser, error) {
	if _, r, err := inline(m.URL); err == nil {
		return io.NopCloser(r), nil
	}
	id := fileID(m.URL, s.writer.id)
	if id == "" {
		return nil, &fs.PathError{Op: "open", Path: m.Name, Err: fs.ErrNotExist}
	}
	f, _, err := s.writer.g.openFile(ctx, s.writer.id, id)
	if errors.Is(err, ErrNotFound) {
		err = &fs.PathError{Op: "open", Path: m.Name, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// storeMedia is storeInline for what an agent says, and stores what it names by a path of the workspace: media whose bytes
// can't be kept goes on without them, with the reason.
func (s *sink) storeMedia(ctx context.Context, ops []event.Event) ([]event.Event, error) {
	return keepMedia(ctx, ops, s.brings, s.keep)
}

func keepMedia(ctx context.Context, ops []event.Event, brings func(event.Event) bool, keep func(context.Context, event.Media) (event.Media, error)) ([]event.Event, error) {
	if !slices.ContainsFunc(ops, brings) {
		return ops, nil
	}
	var out []event.Event
	for _, op := range ops {
		if !brings(op) {
			out = append(out, op)
			continue
		}
		b := *op.Body
		media, err := keep(ctx, *b.Media)
		var refused *Rejection
		switch {
		case err == nil:
			b.Media, op.Body = &media, &b
			out = append(out, op)
		case errors.As(err, &refused):
			bare := withoutPath(*b.Media)
			b.Media, op.Body = &bare, &b
			why := op
			why.Type = event.PartUpdate
			why.Body = &event.Body{State: event.PartFailed, Error: &event.Error{Code: refused.Reason, Message: refused.Message}}
			out = append(out, op, why)
		default:
			return nil, err
		}
	}
	return out, nil
}

// brings reports whether an operation shows media whose bytes are to be stored.
func (s *sink) brings(e event.Event) bool {
	return s.writer.g.cfg.Files != nil && e.Body != nil && e.Body.Media != nil && (strings.HasPrefix(e.Body.Media.URL, "data:") || s.writer.g.namesPath(e.Body.Media.URL))
}

func (s *sink) keep(ctx context.Context, m event.Media) (event.Media, error) {
	if !s.writer.g.namesPath(m.URL) {
		return s.writer.storeInline(ctx, s.speaker(), m)
	}
	stored, err := s.PutPath(ctx, m.URL)
	if err == nil && m.Name != "" {
		stored.Name = files.Name(m.Name)
	}
	if err == nil && m.Alt != "" {
		stored.Alt = m.Alt
	}
	return stored, err
}
