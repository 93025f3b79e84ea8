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

// ErrNoFiles is returned if the turn's sink doesn't store files.
var ErrNoFiles = errors.New("agent: this gateway doesn't store files")

// File describes a file to store. All fields are optional.
type File struct {
	Name string // its last element is used
	MIME string // the declared type; the store also inspects the content, and replaces unsafe types
	Alt  string
	// Origin identifies the file for the agent, such as its URL upstream. FindFile finds a stored file by it, so that a picture which
	// arrives in several frames, or again after a restart, is stored once per conversation.
	Origin string
	// Path is the path in the workspace, if the file is a copy of a file there.
	Path string
}

// FileSink is a sink that stores files with the conversation.
type FileSink interface {
	PutFile(ctx context.Context, f File, r io.Reader) (event.Media, error)
	FindFile(ctx context.Context, origin string) (event.Media, bool, error)
	OpenFile(ctx context.Context, m event.Media) (io.ReadCloser, error)
}

// WorkspaceSink is a sink with a workspace: a folder that agents and the gateway share, so that they can exchange files by path.
type WorkspaceSink interface {
	// PutPath stores a copy of the file at a path. The text of an error is shown to users.
	PutPath(ctx context.Context, path string) (event.Media, error)
	// FilePath returns the path of a stored file in the workspace, or "" if it isn't there.
	FilePath(ctx context.Context, m event.Media) string
}

// PutPath stores a copy of a file in the workspace. The path is absolute or relative to the workspace. If the sink has no
// workspace, it returns ErrNoFiles.
func (e *Emitter) PutPath(ctx context.Context, path string) (event.Media, error) {
	s, ok := e.sink.(WorkspaceSink)
	if !ok {
		return event.Media{}, ErrNoFiles
	}
	return s.PutPath(ctx, path)
}

// FilePath returns the path at which the agent can read a stored file, or "" if the file isn't in the workspace.
func (e *Emitter) FilePath(ctx context.Context, m event.Media) string {
	if s, ok := e.sink.(WorkspaceSink); ok {
		return s.FilePath(ctx, m)
	}
	return ""
}

// PutFile stores a file and returns its media, for [Emitter.Media] or a part.update in [Emitter.Emit]. The file is durable when PutFile
// returns, and is deleted with the conversation. It returns an error if the file is too large or exceeds the quota of the
// conversation's owner.
func (e *Emitter) PutFile(ctx context.Context, f File, r io.Reader) (event.Media, error) {
	s, ok := e.sink.(FileSink)
	if !ok {
		return event.Media{}, ErrNoFiles
	}
	return s.PutFile(ctx, f, r)
}

// FindFile returns the file that was stored in this conversation with the given origin, and whether there is one.
func (e *Emitter) FindFile(ctx context.Context, origin string) (event.Media, bool, error) {
	s, ok := e.sink.(FileSink)
	if !ok {
		return event.Media{}, false, nil
	}
	return s.FindFile(ctx, origin)
}

// maxInline is the maximum total size of the files that Inline reads into memory, in bytes.
const maxInline = 8 << 20

// Inline returns the input with the files of its message as data URLs, for agents that receive the input as JSON and can't read the store.
// Files beyond a total of 8 MiB, and files of the history, keep their URLs.
func (e *Emitter) Inline(ctx context.Context, in Input) (Input, error) {
	parts, remaining := slices.Clone(in.Message.Parts), int64(maxInline)
	for i, p := range parts {
		if p.Media == nil || p.Media.Size > remaining {
			continue
		}
		u, n, err := e.dataURL(ctx, *p.Media, remaining)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrNoFiles):
			continue // the file isn't in the store
		case err != nil:
			return in, err
		case u == "":
			continue
		}
		m := *p.Media
		m.URL = u
		parts[i].Media, remaining = &m, remaining-n
	}
	in.Message.Parts = parts
	return in, nil
}

// dataURL returns the content of a file as a data URL and its size. The URL is empty if the file is larger than max bytes or the media
// already has a data URL.
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

// OpenFile opens a stored file, such as an attachment of a message (a part of kind media in [Message].Parts). If the file isn't in the store
// or belongs to another conversation, the error wraps [io/fs.ErrNotExist].
func (e *Emitter) OpenFile(ctx context.Context, m event.Media) (io.ReadCloser, error) {
	s, ok := e.sink.(FileSink)
	if !ok {
		return nil, ErrNoFiles
	}
	return s.OpenFile(ctx, m)
}
