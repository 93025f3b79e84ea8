// Files that an agent produces or names during a turn.

package attachments

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/files"
)

// turnFiles implements [gateway.TurnFiles]. Files that an agent stores never expire, because it may show one long after it stored it.
type turnFiles struct {
	store *Store
	conversation
	showable func(name string) bool // which files of the workspace the agent may show
}

// OfTurn implements [gateway.Attachments]. Quotas and uploads are those of p, the principal on whose behalf the agent runs.
func (s *Store) OfTurn(c gateway.Updater, p agent.Principal) gateway.TurnFiles {
	return turnFiles{s, conversation{c, gateway.Principal{Tenant: p.Tenant, Subject: p.Subject}, 0}, showableFor(p)}
}

// PutFile implements [agent.FileSink].
func (t turnFiles) PutFile(ctx context.Context, f agent.File, r io.Reader) (event.Media, error) {
	return t.store.putFile(ctx, t.conversation, f, r)
}

// FindFile implements [agent.FileSink].
func (t turnFiles) FindFile(ctx context.Context, origin string) (event.Media, bool, error) {
	return t.store.find(ctx, t.ID(), origin)
}

// OpenFile implements [agent.FileSink]. It opens data URLs and files of this conversation only. For other media, such as links to other
// servers or files of other conversations, the error wraps [fs.ErrNotExist].
func (t turnFiles) OpenFile(ctx context.Context, m event.Media) (io.ReadCloser, error) {
	if _, r, err := openData(m); err == nil {
		return io.NopCloser(r), nil
	}
	missing := &fs.PathError{Op: "open", Path: m.Name, Err: fs.ErrNotExist}
	id := fileID(m.URL, t.ID())
	if id == "" {
		return nil, missing
	}
	f, _, err := t.store.open(ctx, t.ID(), id)
	if errors.Is(err, gateway.ErrNotFound) {
		return nil, missing
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// PutPath implements [agent.WorkspaceSink].
func (t turnFiles) PutPath(ctx context.Context, path string) (event.Media, error) {
	if t.store.workspace == nil {
		return event.Media{}, agent.ErrNoFiles
	}
	return t.store.putNamed(ctx, t.conversation, path, t.showable)
}

// FilePath implements [agent.WorkspaceSink]. It returns the path of the workspace file from which the media were copied, or "" if that file
// no longer exists or the agent may not show it.
func (t turnFiles) FilePath(ctx context.Context, m event.Media) string {
	workspace := t.store.workspace
	id := fileID(m.URL, t.ID())
	if workspace == nil || id == "" {
		return ""
	}
	rec, err := t.store.lookUp(ctx, t.ID(), id)
	if err != nil || rec.Path == "" {
		return ""
	}
	f, err := workspace.Open(rec.Path, t.showable)
	if err != nil {
		return ""
	}
	_ = f.Close() // nothing was written
	return workspace.Path(rec.Path)
}

// Brings implements [gateway.MediaStore].
func (t turnFiles) Brings(m *event.Media) bool { return t.store.brings(m) }

// Store implements [gateway.MediaStore]. Media that can't be stored lose their URL, which may be a path of this machine or a long data URL.
func (t turnFiles) Store(ctx context.Context, m event.Media) (event.Media, error) {
	media, err := t.storeMedia(ctx, m)
	if err != nil {
		return withoutPath(m), err
	}
	return media, nil
}

// storeMedia stores media that an agent shows. Names and descriptions that the agent chose take precedence over those of the file.
func (t turnFiles) storeMedia(ctx context.Context, m event.Media) (event.Media, error) {
	if !t.store.namesPath(m.URL) {
		return t.store.putData(ctx, t.conversation, m)
	}
	media, err := t.PutPath(ctx, m.URL)
	if m.Name != "" {
		media.Name = files.Name(m.Name)
	}
	media.Alt = cmp.Or(m.Alt, media.Alt)
	return media, err
}

// Bare implements [gateway.TurnFiles].
func (t turnFiles) Bare(m event.Media) (bare event.Media, hasPath bool) {
	if !t.store.namesPath(m.URL) {
		return m, false
	}
	return withoutPath(m), true
}

// brings reports whether media carry their bytes or name a file of the workspace, so that they have to be stored. m may be nil.
func (s *Store) brings(m *event.Media) bool {
	return m != nil && (strings.HasPrefix(m.URL, dataPrefix) || s.namesPath(m.URL))
}
