package gateway

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
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/files"
)

// Upload is a file on its way to the gateway.
type Upload struct {
	ID             string
	URL            string // the path where it goes on
	Offset, Length int64
	// Expires is when it is forgotten if nothing is added to it.
	Expires time.Time
	// Brought says where the file is; nil while it is not whole.
	Brought *Brought
}

// Brought is a file that has come.
type Brought struct {
	// Path is where agents find it; empty where the gateway has no workspace.
	Path string `json:"path,omitempty"`
	// Media shows it in a message.
	Media event.Media `json:"media"`
	// Name is its name in the workspace.
	Name string `json:"name,omitempty"`
}

// NewUpload is what is said of a file before it comes.
type NewUpload struct {
	// Conversation is where it will be shown. It is needed where the gateway has no workspace.
	Conversation    string
	Name, MIME, Alt string
	Length          int64
}

// uploadPath is where files are brought.
const uploadPath = "/api/files/upload"

// HasWorkspace reports whether files that are brought get a path.
func (g *Gateway) HasWorkspace() bool { return g.cfg.Workspace != nil }

// MaxFile is how many bytes a file may have.
func (g *Gateway) MaxFile() int64 { return g.cfg.MaxFile }

// CreateUpload begins an upload, whose bytes then come by AppendUpload. The errors are those of Do.
func (g *Gateway) CreateUpload(ctx context.Context, p Principal, n NewUpload) (Upload, error) {
	if err := Decide(p, ActionCreate, nil); err != nil {
		return Upload{}, err
	}
	switch {
	case g.cfg.Uploads == nil || g.cfg.Files == nil:
		return Upload{}, ErrNotFound
	case n.Length == 0:
		return Upload{}, reject(ReasonInvalid, "the file is empty")
	case n.Length < 0:
		return Upload{}, reject(ReasonInvalid, "how long the file is has to be said")
	case n.Length > g.cfg.MaxFile:
		return Upload{}, reject(ReasonTooLarge, "the file has more than %d bytes", g.cfg.MaxFile)
	case n.Conversation == "" && g.cfg.Workspace == nil:
		return Upload{}, reject(ReasonInvalid, "this gateway has no workspace: name the conversation that the file is for")
	}
	if n.Conversation != "" {
		s, err := g.summary(ctx, n.Conversation)
		if err != nil {
			return Upload{}, err
		}
		if err := Decide(p, ActionWrite, &s); err != nil {
			return Upload{}, err
		}
	}
	grant, err := g.quota.Take(p.who(), quota.Need{Bytes: n.Length, Owner: p.who()})
	if err != nil {
		return Upload{}, g.refused(err)
	}
	defer grant.Cancel()
	u, err := g.cfg.Uploads.Create(files.Upload{
		Owner: p.uploader(), Conversation: n.Conversation, Name: files.Name(n.Name), MIME: n.MIME, Alt: n.Alt, Length: n.Length,
	})
	if errors.Is(err, files.ErrTooMany) {
		return Upload{}, reject(ReasonFull, "too many uploads are unfinished; they are forgotten after %v", uploadLife)
	}
	if err != nil {
		return Upload{}, err
	}
	grant.Keep()
	return g.uploadOf(&u)
}

// uploader is whose uploads a principal's are.
func (p Principal) uploader() string {
	if p.Admin {
		return files.Operator
	}
	return files.Owner(p.Tenant, p.Subject)
}

func (g *Gateway) uploadOf(u *files.Upload) (Upload, error) {
	out := Upload{ID: u.ID, URL: g.cfg.BasePath + uploadPath + "/" + u.ID, Offset: u.Offset, Length: u.Length, Expires: time.Now().Add(uploadLife)}
	if u.Done() {
		out.Brought = &Brought{}
		if err := json.Unmarshal(u.Result, out.Brought); err != nil {
			return out, fmt.Errorf("gateway: upload: %w", err)
		}
	}
	return out, nil
}

// upload looks an upload up; that of somebody else is ErrNotFound.
func (g *Gateway) upload(p Principal, id string) (files.Upload, error) {
	if err := Decide(p, ActionCreate, nil); err != nil {
		return files.Upload{}, err
	}
	if g.cfg.Uploads == nil {
		return files.Upload{}, ErrNotFound
	}
	u, err := g.cfg.Uploads.Get(id)
	if errors.Is(err, fs.ErrNotExist) || err == nil && u.Owner != p.uploader() {
		return u, ErrNotFound
	}
	return u, err
}

// Upload returns how far an upload is. One that came whole, and was cut off before it was where it belongs, gets there now.
func (g *Gateway) Upload(ctx context.Context, p Principal, id string) (Upload, error) {
	u, err := g.upload(p, id)
	if err != nil {
		return Upload{}, err
	}
	return g.finish(ctx, p, u)
}

// AppendUpload adds to an upload what r holds, from offset on, which has to be where it goes on: else the error is a Rejection
// for ReasonConflict, and the upload tells where. What came of r stays, whatever the error. stop makes reads of r fail; it is
// called when the same upload is gone on with elsewhere.
func (g *Gateway) AppendUpload(ctx context.Context, p Principal, id string, offset int64, r io.Reader, stop func()) (Upload, error) {
	if _, err := g.upload(p, id); err != nil {
		return Upload{}, err
	}
	u, err := g.cfg.Uploads.Append(ctx, id, offset, r, stop)
	switch {
	case errors.Is(err, files.ErrOffset):
		err = reject(ReasonConflict, "the upload goes on at %d, not at %d", u.Offset, offset)
	case errors.Is(err, files.ErrTooLarge):
		err = reject(ReasonTooLarge, "more than the %d bytes that were announced", u.Length)
	case errors.Is(err, fs.ErrNotExist):
		err = ErrNotFound
	}
	if err != nil {
		out, _ := g.uploadOf(&u) // the other error tells more
		return out, err
	}
	return g.finish(ctx, p, u)
}

// finish brings an upload that is whole to where it belongs. It goes on though who asked may be gone.
func (g *Gateway) finish(ctx context.Context, p Principal, u files.Upload) (Upload, error) {
	if u.Done() || u.Offset < u.Length {
		return g.uploadOf(&u)
	}
	ctx = context.WithoutCancel(ctx)
	u, err := g.cfg.Uploads.Finish(ctx, u.ID, func(u files.Upload, f *os.File) (json.RawMessage, error) {
		b, err := g.place(ctx, p, u, f)
		if err != nil {
			return nil, err
		}
		return json.Marshal(b)
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNotFound
	}
	if err != nil {
		out, _ := g.uploadOf(&u) // the other error tells more
		return out, err
	}
	return g.uploadOf(&u)
}

// place puts a whole file into the workspace, and into the conversation that it is for.
func (g *Gateway) place(ctx context.Context, p Principal, u files.Upload, f *os.File) (b Brought, err error) {
	if g.cfg.Workspace != nil {
		if b.Name, err = g.cfg.Workspace.Place(u.Owner, u.Conversation, u.Name, f); err != nil {
			return b, err
		}
		b.Path = g.cfg.Workspace.Path(b.Name)
		defer func() {
			if err != nil {
				err = errors.Join(err, g.cfg.Workspace.Remove(b.Name))
			}
		}()
		if _, err = f.Seek(0, io.SeekStart); err != nil {
			return b, err
		}
	}
	if u.Conversation != "" {
		b.Media, err = g.PutFile(ctx, p, u.Conversation, agent.File{Name: u.Name, MIME: u.MIME, Alt: u.Alt, Path: b.Name}, f)
		return b, err
	}
	opened, err := g.cfg.Workspace.Open(b.Name, func(string) bool { return true })
	if err != nil {
		return b, err
	}
	defer opened.Close()
	if b.Media, err = g.described(opened); err != nil {
		return b, err
	}
	b.Media.URL, b.Media.Alt = g.pathURL(b.Name), u.Alt
	return b, nil
}

// DropUpload takes an upload away, and what came of it in the workspace. A message that shows the file has a copy.
func (g *Gateway) DropUpload(ctx context.Context, p Principal, id string) error {
	u, err := g.upload(p, id)
	if err != nil {
		return err
	}
	out, err := g.uploadOf(&u)
	if err != nil {
		return err
	}
	if out.Brought != nil && g.held(ctx, p, u.Conversation) {
		return reject(ReasonHeld, "a legal hold keeps it")
	}
	if err := g.cfg.Uploads.Remove(ctx, id); err != nil {
		return err
	}
	if out.Brought != nil && out.Brought.Name != "" && g.cfg.Workspace != nil {
		return g.cfg.Workspace.Remove(out.Brought.Name)
	}
	return nil
}

// held reports whether a legal hold is on a user, or on a conversation, which may be none.
func (g *Gateway) held(ctx context.Context, p Principal, conversation string) bool {
	if !p.Admin {
		if _, ok := g.holds.HoldingSubject(p.Tenant, p.Subject); ok {
			return true
		}
	}
	if conversation == "" {
		return false
	}
	s, err := g.summary(ctx, conversation)
	if err != nil {
		return false // it is gone, and was let go
	}
	_, ok := g.holds.Holding(&s)
	return ok
}

// brought is how many bytes of uploads count for an owner, beside what lies in conversations.
func (g *Gateway) brought(tenant, owner string) (ofOwner, ofTenant int64) {
	if g.cfg.Workspace != nil {
		ofOwner, ofTenant = g.cfg.Workspace.Stored(tenant, owner)
	}
	if g.cfg.Uploads != nil {
		mine, all := g.cfg.Uploads.Stored(tenant, owner)
		ofOwner, ofTenant = ofOwner+mine, ofTenant+all
	}
	return ofOwner, ofTenant
}

// cleanUploads forgets uploads that nobody goes on with, and looks at what lies in the workspace, which is not the gateway's alone.
func (g *Gateway) cleanUploads() error {
	var errs []error
	if g.cfg.Uploads != nil {
		n, err := g.cfg.Uploads.Sweep(uploadLife)
		if errs = append(errs, err); n > 0 {
			g.log.Info("uploads forgotten", "uploads", n)
		}
	}
	if g.cfg.Workspace != nil {
		errs = append(errs, g.cfg.Workspace.Count())
	}
	return errors.Join(errs...)
}

// eraseUploads removes what was brought into a conversation, and what is on its way there.
func (g *Gateway) eraseUploads(ctx context.Context, conversation string) error {
	var errs []error
	if g.cfg.Uploads != nil {
		err := g.cfg.Uploads.RemoveAll(ctx, func(u files.Upload) bool { return u.Conversation == conversation })
		if !errors.Is(err, files.ErrBusy) { // what is just being placed finds no conversation, and is swept
			errs = append(errs, err)
		}
	}
	if g.cfg.Workspace != nil {
		errs = append(errs, g.cfg.Workspace.RemoveConversation(conversation))
	}
	return errors.Join(errs...)
}

// EraseUploads removes all that a user brought or is bringing, but what lies in conversations.
func (g *Gateway) EraseUploads(ctx context.Context, p Principal, tenant, subject string) error {
	if err := Decide(p, ActionAdmin, nil); err != nil {
		return err
	}
	owner := files.Owner(tenant, subject)
	var errs []error
	if g.cfg.Uploads != nil { // first: what is on its way would else get to the workspace after it was emptied
		errs = append(errs, g.cfg.Uploads.RemoveAll(ctx, func(u files.Upload) bool { return u.Owner == owner }))
	}
	if g.cfg.Workspace != nil {
		errs = append(errs, g.cfg.Workspace.RemoveOwner(owner))
	}
	return errors.Join(errs...)
}
