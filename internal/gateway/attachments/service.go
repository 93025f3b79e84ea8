package attachments

import (
	"context"
	"io"
	"os"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/files"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Gateway is what a [Service] needs of the gateway.
type Gateway interface {
	// Conversation returns a conversation with which the principal may do action.
	Conversation(ctx context.Context, p gateway.Principal, action gateway.Action, id string) (journal.Summary, error)
	// Update changes a conversation with which the principal may do action.
	Update(ctx context.Context, p gateway.Principal, action gateway.Action, conversation string, change func(gateway.Tx) error) error
	// Reserve reserves quota for a principal.
	Reserve(p gateway.Principal, n quota.Need) (*quota.Reservation, error)
	// Holds returns the legal holds.
	Holds() *gateway.Holds
}

// Service lets principals read and upload files, as far as they may. Its methods may be called by several goroutines at once.
type Service struct {
	store   *Store
	gateway Gateway
}

// NewService returns a service. gw must have been made with the store.
func NewService(store *Store, gw Gateway) *Service { return &Service{store, gw} }

// HasWorkspace reports whether agents find uploaded files at a path.
func (s *Service) HasWorkspace() bool { return s.store.workspace != nil }

// MaxFile returns how many bytes a file may have.
func (s *Service) MaxFile() int64 { return s.store.maxFile }

// PutFile stores a file in a conversation and returns the media for a message that shows it. A file that no message shows within a day
// is removed. The errors are those of [gateway.Gateway.Do].
func (s *Service) PutFile(ctx context.Context, p gateway.Principal, id string, f agent.File, r io.Reader) (event.Media, error) {
	if _, err := s.gateway.Conversation(ctx, p, gateway.ActionWrite, id); err != nil {
		return event.Media{}, err // before the bytes are read
	}
	return s.store.putAs(ctx, updater{s.gateway, p, id}, p, f, r, lifetime)
}

// updater changes a conversation on behalf of a principal who may write in it.
type updater struct {
	gateway   Gateway
	principal gateway.Principal
	id        string
}

func (u updater) ID() string { return u.id }

func (u updater) Update(ctx context.Context, change func(gateway.Tx) error) error {
	return u.gateway.Update(ctx, u.principal, gateway.ActionWrite, u.id, change)
}

// OpenFile opens a file of a conversation. The caller closes it. If the conversation or the file does not exist, or the principal may
// not read it, the error is [gateway.ErrNotFound].
func (s *Service) OpenFile(ctx context.Context, p gateway.Principal, conversation, id string) (*os.File, event.Media, error) {
	if _, err := s.gateway.Conversation(ctx, p, gateway.ActionRead, conversation); err != nil {
		return nil, event.Media{}, err
	}
	return s.store.open(ctx, conversation, id)
}

// OpenPath opens a file of the workspace. The caller closes it. The error is [gateway.ErrNotFound] for a file that the principal may
// not read too, so that a user without access can't learn which files exist.
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
