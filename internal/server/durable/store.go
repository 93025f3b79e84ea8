// The streams that users create: their routes, and how they are read.

package durable

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/streams"
	"github.com/leat-dev/leat/internal/server"
)

// root is the path below which all streams are.
const root = "/v1/stream/"

// reserved are the first segments of paths that can't be those of stored streams. The protocol reserves the last one.
var reserved = []string{"conversations", "turns", "__ds"}

// streamPath returns the path of a stored stream that a request names. The error is for the client.
func streamPath(path string) (string, error) {
	top, _, _ := strings.Cut(path, "/")
	for _, name := range reserved {
		if top == name {
			return "", server.Errorf(http.StatusForbidden, server.ReasonForbidden, "paths that begin with %s/ are reserved; use another one", name)
		}
	}
	return path, nil
}

// explain converts the errors of the store that have a separate status in the protocol.
func explain(err error) error {
	if errors.Is(err, streams.ErrGone) {
		return server.Errorf(http.StatusGone, server.ReasonNotFound, "the stream was deleted or has expired, and its data is kept for forks or a legal hold")
	}
	return err
}

// forStream makes a handler of one that gets the path of a stream and may return the store's errors.
func (s *surface) forStream(h func(w http.ResponseWriter, r *http.Request, p gateway.Principal, path string) error) server.Handler {
	return secured(func(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
		path, err := streamPath(r.PathValue("path"))
		if err != nil {
			return err
		}
		return explain(h(w, r, p, path))
	})
}

// readStored answers GET and HEAD of a stored stream.
func (s *surface) readStored(w http.ResponseWriter, r *http.Request, p gateway.Principal, path string) error {
	// HEAD is answered by the same route, but must not extend a lifetime.
	if r.Method == http.MethodGet {
		if _, err := parseQuery(r.URL.Query()); err != nil {
			return err // before the lifetime of the stream is extended
		}
	}
	reader, err := s.store.Open(r.Context(), p, path, r.Method == http.MethodGet)
	if err != nil {
		return err
	}
	defer reader.Close()
	st := &storedStream{reader}
	if r.Method == http.MethodGet {
		return s.answerRead(w, r, p, st)
	}
	setLifetime(w.Header(), reader.About())
	return s.head(w, r, st)
}

// setLifetime sets what the creator wrote, and not the time that is left: a client that wants the same lifetime can copy the headers.
// setLifetime sets the headers about the lifetime of a stream.
func setLifetime(h http.Header, about streams.About) {
	if about.HasTTL {
		h.Set(headerTTL, strconv.FormatInt(about.TTL, 10))
	}
	if about.ExpiresAt != "" {
		h.Set(headerExpiresAt, about.ExpiresAt)
	}
}

// storedStream is a stored stream as requests read it.
type storedStream struct{ reader *streams.Reader }

var _ stream = (*storedStream)(nil)

func (s *storedStream) describe(context.Context) (description, error) {
	about := s.reader.About()
	return description{id: strings.TrimPrefix(about.ID, "$"), contentType: about.ContentType, tail: formatOffset(about.Tail, about.Tag), isClosed: about.IsClosed}, nil
}

func (s *storedStream) follow(ctx context.Context, after string, to receiver) error {
	position, about := int64(0), s.reader.About()
	if after != offsetStart {
		var tag string
		var err error
		if position, tag, err = parseOffset(after); err != nil {
			return err
		}
		switch {
		case position > 0 && tag != about.Tag:
			return server.Errorf(http.StatusGone, server.ReasonNotFound, "the offset is one of another stream, which had this path before; begin with offset=%s", offsetStart)
		case position > about.Tail:
			return server.Invalid("the offset is beyond the end of the stream, which is %s", formatOffset(about.Tail, about.Tag))
		}
	}
	return poll(ctx, to, s.reader.Changed, func(ctx context.Context) (*chunk, error) {
		list, about, err := s.reader.Read(ctx, position, chunkSize)
		if err != nil {
			return nil, explain(err)
		}
		c := &chunk{}
		for _, a := range list {
			position = a.At
			c.messages = append(c.messages, message{a.Data, formatOffset(position, about.Tag)})
		}
		c.next = formatOffset(position, about.Tag)
		c.isUpToDate = position >= about.Tail
		c.isClosed = c.isUpToDate && about.IsClosed
		return c, nil
	})
}

// create creates a stream.
func (s *surface) create(w http.ResponseWriter, r *http.Request, p gateway.Principal, path string) error {
	c, err := creationOf(r)
	if err != nil {
		return err
	}
	ctx, cancel := server.CommandContext(r.Context())
	defer cancel()
	about, isCreated, err := s.store.Create(ctx, p, path, c)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", about.ContentType)
	h.Set(headerNextOffset, formatOffset(about.Tail, about.Tag))
	if about.IsClosed {
		h.Set(headerClosed, isTrue)
	}
	if !isCreated {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	h.Set("Location", s.srv.AbsoluteURL(r, r.URL.EscapedPath()))
	w.WriteHeader(http.StatusCreated)
	return nil
}

// post appends to a stream, or closes it.
func (s *surface) post(w http.ResponseWriter, r *http.Request, p gateway.Principal, path string) error {
	a, err := additionOf(r)
	if err != nil {
		return err
	}
	ctx, cancel := server.CommandContext(r.Context())
	defer cancel()
	added, err := s.store.Append(ctx, p, path, a)
	if err != nil {
		return err
	}
	return respondAdded(w, &a, &added)
}

// respondAdded responds to an append. With producers, the status says whether the data is new: 200 if it was appended, 204 if it had been
// before. A close without data is 204 in both cases. The numbers of a producer are in headers, because clients read them from there.
func respondAdded(w http.ResponseWriter, a *streams.Addition, added *streams.Added) error {
	h := w.Header()
	number := func(name string, n int64) { h.Set(name, strconv.FormatInt(n, 10)) }
	if added.IsClosed {
		h.Set(headerClosed, isTrue)
	}
	switch added.Outcome {
	case streams.StaleEpoch:
		number(headerProducerEpoch, added.Epoch)
		return server.Errorf(http.StatusForbidden, server.ReasonForbidden, "a newer epoch of the producer has begun, %d", added.Epoch)
	case streams.InvalidEpoch:
		return server.Invalid("a new Producer-Epoch begins with the Producer-Seq 0")
	case streams.Gap:
		number(headerExpectedSeq, added.Seq)
		number(headerReceivedSeq, a.Producer.Seq)
		return server.Errorf(http.StatusConflict, gateway.ReasonConflict, "an append of the producer is missing: Producer-Seq %d is expected", added.Seq)
	}
	h.Set(headerNextOffset, formatOffset(added.Tail, added.Tag))
	if added.Outcome == streams.Closed {
		return server.Errorf(http.StatusConflict, gateway.ReasonConflict, "the stream is closed")
	}
	if a.Producer == nil {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	number(headerProducerEpoch, added.Epoch)
	number(headerProducerSeq, added.Seq)
	if added.Outcome == streams.Accepted && len(a.Body) > 0 {
		w.WriteHeader(http.StatusOK)
	} else {
		w.WriteHeader(http.StatusNoContent)
	}
	return nil
}

// remove deletes a stream.
func (s *surface) remove(w http.ResponseWriter, r *http.Request, p gateway.Principal, path string) error {
	ctx, cancel := server.CommandContext(r.Context())
	defer cancel()
	if err := s.store.Delete(ctx, p, path); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// registerStore adds the routes of stored streams.
func (s *surface) registerStore() {
	const pattern = root + "{path...}"
	s.srv.HandleAll(server.Authenticated, []server.Route{
		{Method: http.MethodGet, Pattern: pattern, Handler: s.forStream(s.readStored), Stream: true, Errors: respondError},
		{Method: http.MethodPut, Pattern: pattern, Handler: s.forStream(s.create), MaxBody: streams.MaxAppend, Errors: respondError},
		{Method: http.MethodPost, Pattern: pattern, Handler: s.forStream(s.post), MaxBody: streams.MaxAppend, Errors: respondError},
		{Method: http.MethodDelete, Pattern: pattern, Handler: s.forStream(s.remove), Errors: respondError},
	})
}
