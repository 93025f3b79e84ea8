package gateway

import (
	"context"
	"io"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

var (
	_ agent.FileSink      = (*sink)(nil)
	_ agent.WorkspaceSink = (*sink)(nil)
)

// PutFile implements [agent.FileSink].
func (s *sink) PutFile(ctx context.Context, f agent.File, r io.Reader) (event.Media, error) {
	return s.files.PutFile(ctx, f, r)
}

// FindFile implements [agent.FileSink].
func (s *sink) FindFile(ctx context.Context, origin string) (event.Media, bool, error) {
	return s.files.FindFile(ctx, origin)
}

// OpenFile implements [agent.FileSink].
func (s *sink) OpenFile(ctx context.Context, m event.Media) (io.ReadCloser, error) {
	return s.files.OpenFile(ctx, m)
}

// PutPath implements [agent.WorkspaceSink].
func (s *sink) PutPath(ctx context.Context, path string) (event.Media, error) {
	return s.files.PutPath(ctx, path)
}

// FilePath implements [agent.WorkspaceSink].
func (s *sink) FilePath(ctx context.Context, m event.Media) string {
	return s.files.FilePath(ctx, m)
}
