package web

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/leat-dev/leat/event"
)

// maxMedia is how many files of a chat can be downloaded at a time. A history makes those available again that it contains.
const maxMedia = 1000

// openFunc opens a file of a conversation. The caller closes it. If the file doesn't exist any more, the error wraps
// [fs.ErrNotExist].
type openFunc func(ctx context.Context, m event.Media) (io.ReadCloser, error)

// mediaTable has the files that a chat shows, so that only its visitor can download them. The zero value is empty.
// Each room has its own, so a reference of another chat is unknown even if the file is the same.
type mediaTable struct {
	mu    sync.Mutex
	byRef map[string]medium
	refs  []string // oldest first
}

// medium is a file that a room refers to.
type medium struct {
	event.Media
	open openFunc
}

// add adds a file and returns it as it is shown. A file elsewhere is shown with its own address. A reference is a
// digest of the address, so a file that is shown twice has one, and it stays the same after a restart. m is what the
// conversation has; open is called for each download.
func (t *mediaTable) add(m event.Media, open openFunc) file {
	f := file{URL: m.URL, Name: m.Name, MIME: m.MIME, Size: m.Size, Alt: m.Alt}
	if strings.HasPrefix(m.URL, "https://") || strings.HasPrefix(m.URL, "http://") {
		return f
	}
	sum := sha256.Sum256([]byte(m.URL))
	ref := base64.RawURLEncoding.EncodeToString(sum[:18])
	f.URL = "media/" + ref
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byRef == nil {
		t.byRef = map[string]medium{}
	}
	if _, ok := t.byRef[ref]; !ok {
		t.refs = append(t.refs, ref)
	}
	t.byRef[ref] = medium{m, open}
	if len(t.refs) > maxMedia {
		delete(t.byRef, t.refs[0])
		t.refs = t.refs[1:]
	}
	return f
}

// get returns the file of a reference. Unknown references belong to no file of the visitor's chat.
func (t *mediaTable) get(ref string) (medium, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, ok := t.byRef[ref]
	return m, ok
}

// inlineTypes are the media types that a browser may show. Others are downloaded, because they could contain scripts, which would run
// with the rights of this origin.
var inlineTypes = []string{
	"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "audio/mpeg", "audio/ogg", "audio/wav", "video/mp4", "video/webm",
}

// serveMedia answers GET /media/{ref}. If the room is new, its history says which files there are. Reading a history takes time, so
// such requests count against the rate of the chat. It answers 404 for a file of another chat, an unknown reference
// and a file that is gone, so a visitor can't distinguish them. Ranges aren't supported, because open returns a
// reader that can't seek.
func (c *Channel) serveMedia(w http.ResponseWriter, r *http.Request, chat string) {
	room := c.rooms.enter(chat)
	defer c.rooms.leave(room)
	ref := r.PathValue("ref")
	m, ok := room.media.get(ref)
	if !ok {
		if wait, ok := c.rooms.mayWrite(room); !ok {
			refuseRate(w, wait)
			return
		}
		if _, err := c.historyOf(r.Context(), room); err != nil {
			c.log.Warn("history of a chat can't be read", "error", err)
			refuse(w, http.StatusServiceUnavailable, "try again later")
			return
		}
		if m, ok = room.media.get(ref); !ok {
			refuse(w, http.StatusNotFound, "no such file")
			return
		}
	}
	content, err := m.open(r.Context(), m.Media)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			c.log.Warn("file of a chat can't be read", "error", err)
		}
		refuse(w, http.StatusNotFound, "no such file")
		return
	}
	defer content.Close()
	h := w.Header()
	disposition, kind := "attachment", "application/octet-stream"
	if slices.Contains(inlineTypes, m.MIME) {
		disposition, kind = "inline", m.MIME
	}
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", mime.FormatMediaType(disposition, map[string]string{"filename": path.Base("/" + m.Name)}))
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Cache-Control", "private, max-age=3600")
	_, _ = io.Copy(w, content) // it fails only if the visitor has disconnected or the file is damaged, and both cut the response
}
