// Uploads: whole files in one request, and large ones with tus, which resumes after a cut.

package files

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/attachments"
	"github.com/leat-dev/leat/internal/server"
	store "github.com/leat-dev/leat/internal/store/files"
)

// Large files use tus 1.0.0 (https://tus.io/protocols/resumable-upload): POST creates an upload, HEAD returns its offset, PATCH
// appends. A POST without Tus-Resumable has the whole file as its body.

const (
	// tusVersion is the only version of the protocol. Requests with another one get 412 and the header Tus-Version.
	tusVersion = "1.0.0"
	// tusExtensions are the optional parts of tus that the routes implement: a POST may have the first bytes, an
	// unfinished upload expires, and DELETE ends one.
	tusExtensions = "creation,creation-with-upload,expiration,termination"
	// offsetStream is the content type of bytes that belong to an upload. A POST with it has the first ones.
	offsetStream = "application/offset+octet-stream"

	// maxBody lifts the server's limit on bodies, because the declared length of the upload already limits it. A client that stops
	// sending is disconnected.
	maxBody = 1 << 62
)

// uploads registers the routes of tus. About is sent with the answers to OPTIONS, from which clients of tus learn the version and
// the limits.
func (f *surface) uploads(s *server.Server) {
	about := http.Header{"Tus-Version": {tusVersion}, "Tus-Extension": {tusExtensions}, "Tus-Max-Size": {strconv.FormatInt(f.files.MaxFile(), 10)}}
	s.HandleAll(server.Authenticated, []server.Route{
		{Method: http.MethodGet, Pattern: "/api/files/upload", Handler: f.limits, About: about},
		{Method: http.MethodPost, Pattern: "/api/files/upload", Handler: f.create, MaxBody: maxBody},
		{Method: http.MethodGet, Pattern: "/api/files/upload/{upload}", Handler: f.status, About: about},
		{Method: http.MethodHead, Pattern: "/api/files/upload/{upload}", Handler: f.offset},
		{Method: http.MethodPatch, Pattern: "/api/files/upload/{upload}", Handler: f.resume, MaxBody: maxBody},
		{Method: http.MethodDelete, Pattern: "/api/files/upload/{upload}", Handler: f.drop},
	})
}

// limits answers with the limits for uploads. maxSize is in bytes, and limits one file. If workspace is false, an
// upload has to name its conversation.
func (f *surface) limits(w http.ResponseWriter, _ *http.Request, _ gateway.Principal) error {
	return server.Respond(w, map[string]any{"maxSize": f.files.MaxFile(), "workspace": f.files.HasWorkspace()}, nil)
}

// create starts an upload, or stores a whole file.
//
// A request without tus is all or nothing: if the body is incomplete or refused, the upload is dropped.
// With tus, the bytes that arrived stay, and the Location in the response is where the client resumes.
func (f *surface) create(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	resumable := r.Header.Get("Tus-Resumable") != ""
	if err := version(w, r); err != nil {
		return err
	}
	n, err := announced(r, resumable)
	if err != nil {
		return err
	}
	u, err := f.files.CreateUpload(r.Context(), p, n)
	if err != nil {
		return err
	}
	w.Header().Set("Location", u.URL)
	if !resumable || r.Header.Get("Content-Type") == offsetStream {
		if u, err = f.add(w, r, p, u.ID, 0); err != nil && !resumable {
			return errors.Join(err, f.files.DropUpload(r.Context(), p, u.ID))
		}
		if err == nil && !resumable && u.Location == nil {
			return errors.Join(errIncomplete(&u), f.files.DropUpload(r.Context(), p, u.ID))
		}
		if err != nil && u.Location == nil && u.Offset == u.Length {
			return err // the file arrived, but is refused
		}
		// A partial resumable upload stays, and its client can send the rest.
	}
	setHeaders(w, &u)
	server.WriteJSON(w, http.StatusCreated, body(&u))
	return nil
}

// announced parses the description of the file in a request.
//
// Without tus, the name and the other details are in the query, and the length must be known in advance,
// so that a file above the limit is refused before its first byte. With tus, they are base64 values in
// Upload-Metadata. Unknown keys are ignored. The name is only a suggestion, since the service replaces the characters
// that a file name can't have.
func announced(r *http.Request, resumable bool) (n attachments.NewUpload, err error) {
	if !resumable {
		if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
			return n, server.Errorf(http.StatusUnsupportedMediaType, server.ReasonInvalid, "send the file itself as the body, and its name as ?name=")
		}
		if r.ContentLength < 0 {
			return n, server.Errorf(http.StatusLengthRequired, server.ReasonInvalid, "say how long the file is, in Content-Length")
		}
		q := r.URL.Query()
		return attachments.NewUpload{Conversation: q.Get("conversation"), Name: q.Get("name"), MIME: r.Header.Get("Content-Type"), Alt: q.Get("alt"), Length: r.ContentLength}, nil
	}
	if n.Length, err = strconv.ParseInt(r.Header.Get("Upload-Length"), 10, 64); err != nil || n.Length < 0 {
		return n, server.Invalid("Upload-Length has to say how many bytes the file has")
	}
	for _, pair := range strings.Split(r.Header.Get("Upload-Metadata"), ",") {
		key, encoded, _ := strings.Cut(strings.TrimSpace(pair), " ")
		value, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
		if err != nil {
			return n, server.Invalid("Upload-Metadata: the value of %q isn't valid base64", key)
		}
		switch key {
		case "filename", "name":
			n.Name = string(value)
		case "filetype", "type":
			n.MIME = string(value)
		case "conversation":
			n.Conversation = string(value)
		case "alt":
			n.Alt = string(value)
		}
	}
	return n, nil
}

// version refuses other versions of tus. A request without the header passes, because create and drop also serve
// clients that don't use tus. It also sets the gateway's version in the response, as the protocol requires.
func version(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Tus-Resumable", tusVersion)
	if v := r.Header.Get("Tus-Resumable"); v != "" && v != tusVersion {
		w.Header().Set("Tus-Version", tusVersion)
		return server.Errorf(http.StatusPreconditionFailed, server.ReasonInvalid, "unsupported Tus-Resumable %s; send %s", v, tusVersion)
	}
	return nil
}

// status answers with the state of an upload and, if it is complete, the file. The body has the form of uploadBody.
// Asking for the status also finishes an upload whose bytes arrived before a crash.
func (f *surface) status(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	u, err := f.files.Upload(r.Context(), p, r.PathValue("upload"))
	if err != nil {
		return busy(err)
	}
	setHeaders(w, &u)
	return server.Respond(w, body(&u), nil)
}

// offset is status for tus clients. It has no body: the state is in the headers, where tus requires it.
func (f *surface) offset(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	if err := version(w, r); err != nil {
		return err
	}
	u, err := f.files.Upload(r.Context(), p, r.PathValue("upload"))
	if err != nil {
		return busy(err)
	}
	setHeaders(w, &u)
	w.WriteHeader(http.StatusOK)
	return nil
}

// resume appends to an upload. An offset that isn't the upload's own gets 409 and the right one in Upload-Offset, so
// a client continues without another request. Bytes that arrived before an error are stored.
func (f *surface) resume(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	if err := version(w, r); err != nil {
		return err
	}
	if r.Header.Get("Content-Type") != offsetStream {
		return server.Errorf(http.StatusUnsupportedMediaType, server.ReasonInvalid, "the Content-Type of a piece is %s", offsetStream)
	}
	at, err := strconv.ParseInt(r.Header.Get("Upload-Offset"), 10, 64)
	if err != nil || at < 0 {
		return server.Invalid("Upload-Offset has to say where the piece belongs")
	}
	u, err := f.add(w, r, p, r.PathValue("upload"), at)
	if u.ID != "" {
		setHeaders(w, &u)
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// add appends the request's body.
//
// If another request is stuck in the same upload, because its connection broke unnoticed, the callback
// lets a newer one end that read. A read error is the client's fault and gets 400, while an error of the
// disk stays internal.
func (f *surface) add(w http.ResponseWriter, r *http.Request, p gateway.Principal, id string, at int64) (attachments.Upload, error) {
	rc := http.NewResponseController(w)
	in := &errorReader{r: r.Body}
	u, err := f.files.AppendUpload(r.Context(), p, id, at, in, func() {
		_ = rc.SetReadDeadline(time.Unix(1, 0)) // without deadlines, the other request gets an error that the upload is busy
	})
	if err != nil && in.err != nil && !errors.Is(err, store.ErrBusy) {
		err = errIncomplete(&u)
	}
	return u, busy(err)
}

// busy is the error while another request writes to the upload or the upload is being stored. The client may retry.
func busy(err error) error {
	if errors.Is(err, store.ErrBusy) {
		return server.Errorf(http.StatusLocked, server.ReasonBusy, "another request is writing to this upload; try again")
	}
	return err
}

// errIncomplete returns the response to an interrupted body. Usually no client reads it.
func errIncomplete(u *attachments.Upload) error {
	return server.Errorf(http.StatusBadRequest, server.ReasonTimeout, "the body was interrupted; %d of %d bytes are stored", u.Offset, u.Length)
}

// errorReader records that a reader failed, to distinguish a connection error from a disk error. One goroutine uses
// it. io.EOF isn't a failure.
type errorReader struct {
	r   io.Reader
	err error
}

func (t *errorReader) Read(b []byte) (int, error) {
	n, err := t.r.Read(b)
	if err != nil && err != io.EOF {
		t.err = err
	}
	return n, err
}

// drop deletes an upload. It also removes the file that a complete upload has placed in the workspace. Messages have
// a copy of it.
func (f *surface) drop(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	if err := version(w, r); err != nil {
		return err
	}
	if err := f.files.DropUpload(r.Context(), p, r.PathValue("upload")); err != nil {
		return busy(err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// setHeaders sets the headers that describe an upload. Caches must not store these responses, because a stale offset
// would lead to a conflict.
func setHeaders(w http.ResponseWriter, u *attachments.Upload) {
	h := w.Header()
	h.Set("Upload-Offset", strconv.FormatInt(u.Offset, 10))
	h.Set("Upload-Length", strconv.FormatInt(u.Length, 10))
	h.Set("Upload-Expires", u.Expires.UTC().Format(http.TimeFormat))
	h.Set("Cache-Control", "no-store")
}

// uploadBody is an upload as JSON. Offset and Length are in bytes. Path and Media are there only when the upload is
// complete, and Path only if the gateway has a workspace.
type uploadBody struct {
	Offset int64  `json:"offset"`
	Length int64  `json:"length"`
	Path   string `json:"path,omitempty"`
	Media  any    `json:"media,omitempty"`
}

func body(u *attachments.Upload) any {
	b := uploadBody{Offset: u.Offset, Length: u.Length}
	if u.Location != nil {
		b.Path, b.Media = u.Location.Path, u.Location.Media
	}
	return b
}
