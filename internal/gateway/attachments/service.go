package attachments

import (
	"context"
	"io"
	"io/fs"
	"os"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/files"
)

// Service lets principals read and upload files, and checks their access. Its methods may be called from several goroutines.
type Service struct {
	store   *Store
	gateway *gateway.Gateway
}

// NewService returns a service. store must be the one in the configuration of gw.
func NewService(store *Store, gw *gateway.Gateway) *Service { return &Service{store, gw} }

// HasWorkspace reports whether the gateway shares a workspace with its agents, in which they find uploaded files.
func (s *Service) HasWorkspace() bool { return s.store.workspace != nil }

// MaxFile returns the size limit of a file, in bytes.
func (s *Service) MaxFile() int64 { return s.store.maxFile }

// PutFile stores a file in a conversation that the principal may write in. It checks the access before it reads the bytes, because a
// request without access must not fill the disk, and again in the commit. It returns the media for a message that shows it. If no
// message shows the file within a day, it is removed. The errors are those of [gateway.Gateway.Do].
func (s *Service) PutFile(ctx context.Context, p gateway.Principal, id string, f agent.File, r io.Reader) (event.Media, error) {
	if _, err := s.gateway.Conversation(ctx, p, gateway.ActionWrite, id); err != nil {
		return event.Media{}, err // before the bytes are read
	}
	return s.store.putFile(ctx, conversation{updater{s.gateway, p, id}, p, lifetime}, f, r)
}

// OpenMedia opens what a message of a conversation shows: the bytes of a data URL, or a stored file. For media at another address the error
// is [fs.ErrNotExist].
func (s *Service) OpenMedia(ctx context.Context, p gateway.Principal, conversation string, m event.Media) (io.ReadCloser, error) {
	if _, r, err := openData(m); err == nil {
		return io.NopCloser(r), nil
	}
	id := fileID(m.URL, conversation)
	if id == "" {
		return nil, &fs.PathError{Op: "open", Path: m.Name, Err: fs.ErrNotExist}
	}
	f, _, err := s.OpenFile(ctx, p, conversation, id)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// updater implements [gateway.Updater] for a conversation. It checks at each update that the principal may write in it.
type updater struct {
	gateway   *gateway.Gateway
	principal gateway.Principal
	id        string
}

func (u updater) ID() string { return u.id }

func (u updater) Update(ctx context.Context, change func(gateway.Tx) error) error {
	return u.gateway.Update(ctx, u.principal, gateway.ActionWrite, u.id, change)
}

// OpenFile opens a file of a conversation. The caller closes it. If the conversation or the file does not exist, or the principal may
// not read the conversation, the error is [gateway.ErrNotFound].
func (s *Service) OpenFile(ctx context.Context, p gateway.Principal, conversation, id string) (*os.File, event.Media, error) {
	if _, err := s.gateway.Conversation(ctx, p, gateway.ActionRead, conversation); err != nil {
		return nil, event.Media{}, err
	}
	return s.store.open(ctx, conversation, id)
}

// OpenPath opens a file of the workspace. The caller closes it. If the file is missing or the principal may not read it, the error is
// [gateway.ErrNotFound] in both cases, so that users can't find out which files of others exist.
func (s *Service) OpenPath(p gateway.Principal, path string) (*files.OpenFile, event.Media, error) {
	if err := gateway.Decide(p, gateway.ActionList, nil); err != nil {
		return nil, event.Media{}, err
	}
	if s.store.workspace == nil {
		return nil, event.Media{}, gateway.ErrNotFound
	}
	f, err := s.store.workspace.Open(path, readableBy(p))
	if err != nil {
		return nil, event.Media{}, gateway.ErrNotFound
	}
	m, err := describe(f)
	if err != nil {
		_ = f.Close() // the other error matters more
		return nil, event.Media{}, err
	}
	return f, m, nil
}
