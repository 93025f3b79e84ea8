package agent

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
)

// ErrNoFiles says that whoever runs the turn keeps no files.
var ErrNoFiles = errors.New("agent: files are not kept")

// File is what is known of a file before it is stored. Each may be empty.
type File struct {
	Name string // its last element is used
	MIME string // what its origin says; the store looks at the bytes too, and does not believe what is unsafe
	Alt  string
	// Origin is where it came from, for the agent: what it was stored under before is found again, so that a picture that
	// comes in ten frames and after a restart is stored once a conversation.
	Origin string
	// Path is its name in the workspace, where it is a copy of a file there.
	Path string
}

// FileSink is a sink that keeps files with the conversation.
type FileSink interface {
	PutFile(ctx context.Context, f File, r io.Reader) (event.Media, error)
	FindFile(ctx context.Context, origin string) (event.Media, bool, error)
	OpenFile(ctx context.Context, m event.Media) (io.ReadCloser, error)
}

// WorkspaceSink is a sink with a workspace: a folder in which agents and the gateway name files to each other by their paths.
type WorkspaceSink interface {
	// PutPath stores a copy of the file that an agent names by its path. The error says in words why that can't be done.
	PutPath(ctx context.Context, path string) (event.Media, error)
	// FilePath is where a stored file lies in the workspace, too; empty where it does not.
	FilePath(ctx context.Context, m event.Media) string
}

// PutPath stores the file of the workspace that the agent names by its path, absolute or relative to the workspace. Where there is
// no workspace the error is ErrNoFiles.
func (e *Emitter) PutPath(ctx context.Context, path string) (event.Media, error) {
	s, ok := e.sink.(WorkspaceSink)
	if !ok {
		return event.Media{}, ErrNoFiles
	}
	return s.PutPath(ctx, path)
}

// FilePath is the path at which the agent finds a stored file itself; empty where that is not in the workspace.
func (e *Emitter) FilePath(ctx context.Context, m event.Media) string {
	if s, ok := e.sink.(WorkspaceSink); ok {
		return s.FilePath(ctx, m)
	}
	return ""
}

// PutFile stores a file and returns the media of which parts can be made ([Emitter.Media], or part.update in [Emitter.Emit]).
// The file is durable when PutFile returns, and goes with the conversation. A file that is too large, or that does not fit
// the limits of the conversation's owner, is an error that says so.
func (e *Emitter) PutFile(ctx context.Context, f File, r io.Reader) (event.Media, error) {
	s, ok := e.sink.(FileSink)
	if !ok {
		return event.Media{}, ErrNoFiles
	}
	return s.PutFile(ctx, f, r)
}

// FindFile returns what was stored in this conversation with that origin.
func (e *Emitter) FindFile(ctx context.Context, origin string) (event.Media, bool, error) {
	s, ok := e.sink.(FileSink)
	if !ok {
		return event.Media{}, false, nil
	}
	return s.FindFile(ctx, origin)
}

// maxInline bounds what Inline reads into memory, in bytes.
const maxInline = 8 << 20

// Inline returns the input with the files of its message as data URLs, for an agent that gets its input as JSON and can't read
// the store: as many as fit into 8 MiB together. The others, and those of the history, stay as they are named.
func (e *Emitter) Inline(ctx context.Context, in Input) (Input, error) {
	parts, left := slices.Clone(in.Message.Parts), int64(maxInline)
	for i, p := range parts {
		if p.Media == nil || p.Media.Size > left {
			continue
		}
		u, n, err := e.dataURL(ctx, *p.Media, left)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrNoFiles):
			continue // it lies elsewhere
		case err != nil:
			return in, err
		case u == "":
			continue
		}
		m := *p.Media
		m.URL = u
		parts[i].Media, left = &m, left-n
	}
	in.Message.Parts = parts
	return in, nil
}

// dataURL reads a file of at most max bytes; it returns an empty URL where it has more, or already is one.
func (e *Emitter) dataURL(ctx context.Context, m event.Media, max int64) (u string, n int64, err error) {
	if strings.HasPrefix(m.URL, "data:") {
		return "", 0, nil
	}
	f, err := e.OpenFile(ctx, m)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, max+1))
	if err != nil {
		return "", 0, fmt.Errorf("read file %s: %w", m.Name, err)
	}
	if int64(len(b)) > max {
		return "", 0, nil
	}
	return "data:" + m.MIME + ";base64," + base64.StdEncoding.EncodeToString(b), int64(len(b)), nil
}

// OpenFile reads a stored file, such as an attachment of a message ([Message].Parts of kind media). Media that does not lie in
// the store, or belongs to another conversation, gives an error that wraps [io/fs.ErrNotExist].
func (e *Emitter) OpenFile(ctx context.Context, m event.Media) (io.ReadCloser, error) {
	s, ok := e.sink.(FileSink)
	if !ok {
		return nil, ErrNoFiles
	}
	return s.OpenFile(ctx, m)
}
