// Which files of the agents' workspace a conversation may show.

package attachments

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/files"
)

// A workspace is a folder in which the gateway and its agents name files to each other by paths. A file that is named is copied into the
// conversation that shows it, so readers don't need access to the workspace, and later changes of the file don't change the message.

// readableBy returns which files of the workspace a principal may read: its own uploads, or all for the operator.
func readableBy(p gateway.Principal) func(name string) bool {
	if p.Admin {
		return func(string) bool { return true }
	}
	return func(name string) bool { return files.OwnerOf(name) == files.Owner(p.Tenant, p.Subject) }
}

// showableFor returns which files of the workspace an agent may show on behalf of a principal: those of agents, and the principal's own
// uploads. Otherwise a user could ask an agent to show the upload of another user.
func showableFor(p agent.Principal) func(name string) bool {
	return func(name string) bool {
		owner := files.OwnerOf(name)
		return owner == "" || owner == files.Owner(p.Tenant, p.Subject)
	}
}

// describe returns the media of a workspace file without a URL. The MIME type is derived from the first bytes and the name. Afterwards the
// file is at its start again, so that the caller can send it.
func describe(f *files.OpenFile) (event.Media, error) {
	head := make([]byte, files.Sniffed)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return event.Media{}, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return event.Media{}, err
	}
	name := files.Name(f.Name)
	return event.Media{MIME: files.MIME(head[:n], files.ByName(name)), Name: name, Size: f.Info.Size()}, nil
}

// withoutPath returns media that keep the file name of a path and nothing else of it: readers must not learn the folders of the machine.
func withoutPath(m event.Media) event.Media {
	if m.Name == "" && isPath(m.URL) {
		m.Name = files.Name(m.URL)
	}
	m.URL = ""
	return m
}

// putNamed stores a copy of the workspace file that a path names. A file that hasn't changed since it was last stored isn't stored again.
// If the file can't be read, the error is a *Rejection with ReasonFile. allowed decides by the file's name, after symbolic links are
// resolved too. The error text doesn't distinguish a missing file from a forbidden one.
func (s *Store) putNamed(ctx context.Context, c conversation, path string, allowed func(name string) bool) (event.Media, error) {
	if servedFile := s.servedPath(path); servedFile != "" {
		path = servedFile
	}
	f, err := s.workspace.Open(path, allowed)
	switch {
	case errors.Is(err, files.ErrOutside):
		return event.Media{}, reject(gateway.ReasonFile, "it is outside the workspace")
	case err != nil:
		return event.Media{}, reject(gateway.ReasonFile, "there is no such file in the workspace")
	}
	defer f.Close()
	if m, ok, err := s.find(ctx, c.ID(), f.Origin); err != nil || ok {
		return m, err
	}
	name, _ := s.workspace.Clean(path) // it was just opened, so it is inside
	return s.putFile(ctx, c, agent.File{Name: f.Name, MIME: files.ByName(f.Name), Origin: f.Origin, Path: name}, f)
}

// conversation is the target of files: a conversation, the principal on whose behalf they are stored, and their lifetime.
type conversation struct {
	gateway.Updater
	principal gateway.Principal
	life      time.Duration // of a file that no message shows; 0 means as long as the conversation
}
