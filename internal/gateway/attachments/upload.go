// Uploads that can be resumed. The size of the incomplete file says where an upload continues.

package attachments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/files"
)

// Upload is the state of a resumable upload.
type Upload struct {
	ID             string
	URL            string // the path to which the remaining bytes are sent
	Offset, Length int64  // bytes received, and total bytes
	// Expires is the time at which the upload is removed unless further bytes arrive.
	Expires time.Time
	// Location describes the file. It is nil until the upload is complete.
	Location *Location
}

// Location is the place in which a complete file was stored: the workspace, a conversation, or both. Its JSON is stored with the upload.
type Location struct {
	// Path is where agents find the file. It is empty if the gateway has no workspace.
	Path string `json:"path,omitempty"`
	// Media show the file in a message.
	Media event.Media `json:"media"`
	// Name is the name of the file in the workspace.
	Name string `json:"name,omitempty"`
}

// NewUpload describes a file before its bytes arrive. Length is in bytes and must be known: an upload is complete when that many arrived.
type NewUpload struct {
	// Conversation is the conversation that will show the file. It is required if the gateway has no workspace.
	Conversation    string
	Name, MIME, Alt string
	Length          int64
}

// uploadPath is the path to which files are uploaded. A client sends the remaining bytes of an upload to this path and the upload's id.
const uploadPath = "/api/files/upload"

// CreateUpload begins an upload. Its bytes follow with [Service.AppendUpload]. The errors are those of [gateway.Gateway.Do].
//
// All checks are made before the first byte: access, size, and the quota for the whole length. The reservation only bridges the time until
// the upload store counts the length itself, so it is committed or cancelled before the call returns.
func (s *Service) CreateUpload(ctx context.Context, p gateway.Principal, n NewUpload) (Upload, error) {
	if err := gateway.Decide(p, gateway.ActionCreate, nil); err != nil {
		return Upload{}, err
	}
	switch {
	case s.store.uploads == nil:
		return Upload{}, gateway.ErrNotFound
	case n.Length == 0:
		return Upload{}, reject(gateway.ReasonInvalid, "the file is empty")
	case n.Length < 0:
		return Upload{}, reject(gateway.ReasonInvalid, "the length of the file is needed")
	case n.Length > s.store.maxFile:
		return Upload{}, s.store.tooLarge()
	case n.Conversation == "" && s.store.workspace == nil:
		return Upload{}, reject(gateway.ReasonInvalid, "this gateway has no workspace: name the conversation that the file is for")
	}
	if n.Conversation != "" {
		if _, err := s.gateway.Conversation(ctx, p, gateway.ActionWrite, n.Conversation); err != nil {
			return Upload{}, err
		}
	}
	reservation, err := s.gateway.Reserve(p, quota.Need{Bytes: n.Length, Owner: p.Account()})
	if err != nil {
		return Upload{}, err
	}
	defer reservation.Cancel()
	u, err := s.store.uploads.Create(files.Upload{
		Owner: uploaderOf(p), Conversation: n.Conversation, Name: files.Name(n.Name), MIME: n.MIME, Alt: n.Alt, Length: n.Length,
	})
	if errors.Is(err, files.ErrTooMany) {
		return Upload{}, reject(gateway.ReasonFull, "too many uploads are unfinished; each is removed after %v without new bytes", lifetime)
	}
	if err != nil {
		return Upload{}, err
	}
	reservation.Commit()
	return s.state(&u)
}

// uploaderOf returns the name under which a principal's uploads are stored. All admins share the operator's uploads.
func uploaderOf(p gateway.Principal) string {
	if p.Admin {
		return files.Operator
	}
	return files.Owner(p.Tenant, p.Subject)
}

// state returns what a client needs to continue an upload, and the location of the file if the upload is complete. Expires assumes that
// bytes have just arrived.
func (s *Service) state(u *files.Upload) (Upload, error) {
	result := Upload{ID: u.ID, URL: s.store.basePath + uploadPath + "/" + u.ID, Offset: u.Offset, Length: u.Length, Expires: time.Now().Add(lifetime)}
	if u.Done() {
		result.Location = &Location{}
		if err := json.Unmarshal(u.Result, result.Location); err != nil {
			return result, fmt.Errorf("attachments: result of upload %s: %w", u.ID, err)
		}
	}
	return result, nil
}

// find returns an upload of a principal. For the upload of another principal the error is [gateway.ErrNotFound].
func (s *Service) find(p gateway.Principal, id string) (files.Upload, error) {
	if err := gateway.Decide(p, gateway.ActionCreate, nil); err != nil {
		return files.Upload{}, err
	}
	if s.store.uploads == nil {
		return files.Upload{}, gateway.ErrNotFound
	}
	u, err := s.store.uploads.Get(id)
	if errors.Is(err, fs.ErrNotExist) || err == nil && u.Owner != uploaderOf(p) {
		return u, gateway.ErrNotFound
	}
	return u, err
}

// Upload returns the state of an upload. If all bytes had arrived but the file was not stored yet, for example because the gateway crashed
// in between, it is stored now.
func (s *Service) Upload(ctx context.Context, p gateway.Principal, id string) (Upload, error) {
	u, err := s.find(p, id)
	if err != nil {
		return Upload{}, err
	}
	return s.finish(ctx, p, u)
}

// AppendUpload appends the bytes of r to an upload. If offset differs from the upload's offset, the error is a *Rejection with
// ReasonConflict, and the returned upload has the current one. Bytes that arrived before an error are kept. stop must make reads of r
// fail: it is called when another request continues the same upload, because the client may have lost the connection of the first.
func (s *Service) AppendUpload(ctx context.Context, p gateway.Principal, id string, offset int64, r io.Reader, stop func()) (Upload, error) {
	if _, err := s.find(p, id); err != nil {
		return Upload{}, err
	}
	u, err := s.store.uploads.Append(ctx, id, offset, r, stop)
	switch {
	case errors.Is(err, files.ErrOffset):
		err = reject(gateway.ReasonConflict, "the upload continues at %d, not at %d", u.Offset, offset)
	case errors.Is(err, files.ErrTooLarge):
		err = reject(gateway.ReasonTooLarge, "more than the %d bytes that were announced", u.Length)
	case errors.Is(err, fs.ErrNotExist):
		err = gateway.ErrNotFound
	}
	if err != nil {
		result, _ := s.state(&u) // the other error matters more
		return result, err
	}
	return s.finish(ctx, p, u)
}

// finish stores the file of an upload whose bytes have all arrived. It continues if the context is cancelled: the client has sent all
// bytes and may never ask for the upload again. A repeated call returns the stored location.
func (s *Service) finish(ctx context.Context, p gateway.Principal, u files.Upload) (Upload, error) {
	if u.Done() || u.Offset < u.Length {
		return s.state(&u)
	}
	ctx = context.WithoutCancel(ctx)
	u, err := s.store.uploads.Finish(ctx, u.ID, func(u files.Upload, f *os.File) (json.RawMessage, error) {
		location, err := s.place(ctx, p, u, f)
		if err != nil {
			return nil, err
		}
		return json.Marshal(location)
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = gateway.ErrNotFound
	}
	if err != nil {
		result, _ := s.state(&u) // the other error matters more
		return result, err
	}
	return s.state(&u)
}

// place copies a complete file into the workspace, if the gateway has one, and into its conversation, if it has one. If the second step
// fails, the copy in the workspace is removed. Without a conversation, the media refer to the file in the workspace.
func (s *Service) place(ctx context.Context, p gateway.Principal, u files.Upload, f *os.File) (location Location, err error) {
	workspace := s.store.workspace
	if workspace != nil {
		if location.Name, err = workspace.Place(u.Owner, u.Conversation, u.Name, f); err != nil {
			return location, err
		}
		location.Path = workspace.Path(location.Name)
		defer func() {
			if err != nil {
				err = errors.Join(err, workspace.Remove(location.Name))
			}
		}()
		if _, err = f.Seek(0, io.SeekStart); err != nil {
			return location, err
		}
	}
	if u.Conversation != "" {
		location.Media, err = s.PutFile(ctx, p, u.Conversation, agent.File{Name: u.Name, MIME: u.MIME, Alt: u.Alt, Path: location.Name}, f)
		return location, err
	}
	placedFile, err := workspace.Open(location.Name, func(string) bool { return true })
	if err != nil {
		return location, err
	}
	defer placedFile.Close()
	if location.Media, err = describe(placedFile); err != nil {
		return location, err
	}
	location.Media.URL, location.Media.Alt = s.store.pathURL(location.Name), u.Alt
	return location, nil
}

// DropUpload removes an upload, and its file from the workspace. Messages that show the file have a copy. If a legal hold covers the
// user or the conversation, a complete upload is kept, and the error is a *Rejection with ReasonHeld.
func (s *Service) DropUpload(ctx context.Context, p gateway.Principal, id string) error {
	u, err := s.find(p, id)
	if err != nil {
		return err
	}
	result, err := s.state(&u)
	if err != nil {
		return err
	}
	if result.Location != nil && s.isHeld(ctx, p, u.Conversation) {
		return reject(gateway.ReasonHeld, "a legal hold keeps it")
	}
	if err := s.store.uploads.Remove(ctx, id); err != nil {
		return err
	}
	if result.Location != nil && result.Location.Name != "" && s.HasWorkspace() {
		return s.store.workspace.Remove(result.Location.Name)
	}
	return nil
}

// isHeld reports whether a legal hold covers a user or a conversation. conversation may be empty.
func (s *Service) isHeld(ctx context.Context, p gateway.Principal, conversation string) bool {
	holds := s.gateway.Holds()
	if !p.Admin {
		if _, ok := holds.HoldOnSubject(p.Tenant, p.Subject); ok {
			return true
		}
	}
	if conversation == "" {
		return false
	}
	summary, err := s.gateway.Conversation(ctx, gateway.Principal{Admin: true}, gateway.ActionRead, conversation)
	if err != nil {
		return false // it was deleted, so it was not held
	}
	_, ok := holds.HoldOn(&summary)
	return ok
}

// EraseUploads removes all uploads of a user, and their files in the workspace. Copies in conversations stay: they belong to the owners of
// the conversations. Only admins may call it; a purge does.
func (s *Service) EraseUploads(ctx context.Context, p gateway.Principal, tenant, subject string) error {
	if err := gateway.Decide(p, gateway.ActionAdmin, nil); err != nil {
		return err
	}
	owner := files.Owner(tenant, subject)
	var errs []error
	if s.store.uploads != nil { // first, because a running upload could be placed in the workspace after it was emptied
		errs = append(errs, s.store.uploads.RemoveAll(ctx, func(u files.Upload) bool { return u.Owner == owner }))
	}
	if s.HasWorkspace() {
		errs = append(errs, s.store.workspace.RemoveOwner(owner))
	}
	return errors.Join(errs...)
}
