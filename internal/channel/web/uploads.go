package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"sync"
	"time"

	"github.com/leat-dev/leat/internal/channel"
)

const (
	// MaxUpload is the largest file of a visitor in bytes. It is low, because the content is in memory.
	MaxUpload = 20 << 20
	// maxUploads is how many bytes of uploads are in memory at a time. Further visitors have to wait.
	maxUploads = 100 << 20
	// maxShare is how many of these bytes one address may have, so that a single visitor can't use up the space of all.
	maxShare = 2 * MaxUpload
	// uploadLife is how long an upload waits for its message, and its message for the agent.
	uploadLife = 15 * time.Minute
	// maxName is the longest name of a file in bytes, as in most file systems.
	maxName = 255
	// maxFiles is how many files a message may have.
	maxFiles = 10
)

// uploads has the files of visitors that are not stored in a conversation yet. They are in memory, because they are
// there for moments. A restart loses them, and the visitor has to attach the file again.
type uploads struct {
	mu    sync.Mutex
	byRef map[string]*upload
	// bytes is the sum over all owners, and includes space that is only reserved.
	bytes int64
	// byOwner are the bytes of each owner, those of uploads in progress included.
	byOwner map[string]int64
}

// upload is a file that was received completely.
type upload struct {
	chat string
	// owner is an address, or the chat if the address is that of a proxy. Its uploads count together.
	owner   string
	media   channel.Media
	content []byte
	expires time.Time
}

// reserve makes space for an upload of an owner, and drops those that have expired. The caller must release what the
// file doesn't use. It never waits, so a false result is final for this request.
func (u *uploads) reserve(owner string, size int64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	at := time.Now()
	for ref, o := range u.byRef {
		if at.After(o.expires) {
			u.count(o.owner, -int64(len(o.content)))
			delete(u.byRef, ref)
		}
	}
	if u.bytes+size > maxUploads || u.byOwner[owner]+size > maxShare {
		return false
	}
	u.count(owner, size)
	return true
}

// release gives back space that was reserved.
func (u *uploads) release(owner string, size int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.count(owner, -size)
}

// count adds to the bytes of an owner. It is called with the lock.
func (u *uploads) count(owner string, size int64) {
	u.bytes += size
	if u.byOwner[owner] += size; u.byOwner[owner] == 0 {
		delete(u.byOwner, owner)
	}
}

// add stores an upload until a message names it or its time is over. Its bytes must have been reserved.
func (u *uploads) add(o *upload) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.byRef[o.media.Ref] = o
}

// take returns the files of a message, whose lives begin again. It returns false if one is missing or belongs to
// another chat. The files stay, because the message may be delivered to the agent more than once.
func (u *uploads) take(chat string, refs []string) ([]channel.Media, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	var list []channel.Media
	for _, ref := range refs {
		o := u.byRef[ref]
		if o == nil || o.chat != chat || len(list) == maxFiles {
			return nil, false
		}
		o.expires = time.Now().Add(uploadLife)
		list = append(list, o.media)
	}
	return list, true
}

// FetchMedia implements [channel.MediaChannel]. The file remains for a repetition until it expires.
func (c *Channel) FetchMedia(_ context.Context, m channel.Media) (io.ReadCloser, error) {
	c.uploads.mu.Lock()
	defer c.uploads.mu.Unlock()
	o := c.uploads.byRef[m.Ref]
	if o == nil {
		return nil, fmt.Errorf("web: an upload has expired: %w", fs.ErrNotExist)
	}
	return io.NopCloser(bytes.NewReader(o.content)), nil
}

// serveUpload answers POST /files?name=NAME, whose body is the file. The result names the file for a message. Space
// is reserved before the body is read: the declared length or, if there is none, the largest file. A file without a
// usable name is called "file". Its type is what the browser claims, and nothing is derived from it here.
func (c *Channel) serveUpload(w http.ResponseWriter, r *http.Request, chat string) {
	size := r.ContentLength
	if size < 0 || size > MaxUpload {
		size = MaxUpload
	}
	if r.ContentLength > MaxUpload {
		refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("a file may have %d MB", MaxUpload>>20))
		return
	}
	owner := cmp.Or(addressOf(r), chat)
	if !c.uploads.reserve(owner, size) {
		w.Header().Set("Retry-After", "60")
		refuse(w, http.StatusServiceUnavailable, "too many uploads; try again later")
		return
	}
	content, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxUpload))
	c.uploads.release(owner, size-int64(len(content)))
	if err == nil && len(content) == 0 {
		err = errEmpty
	}
	if err != nil {
		c.uploads.release(owner, int64(len(content)))
		status := http.StatusBadRequest
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			status = http.StatusRequestEntityTooLarge
		}
		refuse(w, status, "the file could not be read")
		return
	}
	name := path.Base("/" + r.URL.Query().Get("name"))
	if name == "/" || len(name) > maxName {
		name = "file"
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		kind = "application/octet-stream"
	}
	o := &upload{
		chat: chat, owner: owner, content: content, expires: time.Now().Add(uploadLife),
		media: channel.Media{Ref: newID(), Name: name, Type: kind, Size: int64(len(content))},
	}
	c.uploads.add(o)
	writeJSON(w, struct {
		File string `json:"file"` // its reference for the frame message
		Name string `json:"name"`
		MIME string `json:"mime"`
		Size int64  `json:"size"`
	}{o.media.Ref, name, kind, o.media.Size})
}

var errEmpty = errors.New("web: the file is empty")
