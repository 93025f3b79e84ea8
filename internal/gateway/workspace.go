package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/store/files"
)

// A workspace is a folder in which the gateway and its agents name files to each other by paths. A file that somebody names is
// copied into the conversation where it is shown: those who read there need not reach the workspace, and what they see stays
// what it was.

// ReasonFile says that a file that was named can't be had.
const ReasonFile = "file_unavailable"

// downloadPath is where files of the workspace are served, with the path in the query.
const downloadPath = "/api/files/download"

// reads says of which files of the workspace a principal may read: its own uploads. The operator's are all.
func reads(p Principal) func(name string) bool {
	if p.Admin {
		return func(string) bool { return true }
	}
	return func(name string) bool { return files.OwnerOf(name) == files.Owner(p.Tenant, p.Subject) }
}

// shows says which files of the workspace an agent may show on behalf of a principal: those of agents, and what that
// principal brought, and nobody else's.
func shows(p agent.Principal) func(name string) bool {
	return func(name string) bool {
		owner := files.OwnerOf(name)
		return owner == "" || owner == files.Owner(p.Tenant, p.Subject)
	}
}

// OpenPath opens a file of the workspace to read, which the caller closes. The error is ErrNotFound for all that the principal
// may not read, so that nobody learns what is there.
func (g *Gateway) OpenPath(p Principal, named string) (*files.Opened, event.Media, error) {
	if err := Decide(p, ActionList, nil); err != nil {
		return nil, event.Media{}, err
	}
	if g.cfg.Workspace == nil {
		return nil, event.Media{}, ErrNotFound
	}
	f, err := g.cfg.Workspace.Open(named, reads(p))
	if err != nil {
		return nil, event.Media{}, ErrNotFound
	}
	m, err := g.described(f)
	if err != nil {
		_ = f.Close() // the other error tells more
		return nil, event.Media{}, err
	}
	return f, m, nil
}

// described says what a file of the workspace is, by its first bytes and its name.
func (g *Gateway) described(f *files.Opened) (event.Media, error) {
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

// pathURL is where a file of the workspace is served.
func (g *Gateway) pathURL(name string) string {
	return g.cfg.BasePath + downloadPath + "?path=" + url.QueryEscape(g.cfg.Workspace.Path(name))
}

// namesPath reports whether the address of media is a path of the workspace, or the address where one is served.
func (g *Gateway) namesPath(u string) bool {
	if g.cfg.Workspace == nil || u == "" {
		return false
	}
	return g.servedPath(u) != "" || isPath(u) && !strings.HasPrefix(u, g.cfg.BasePath+"/api/")
}

// servedPath is the path in an address where the workspace is served; empty in any other.
func (g *Gateway) servedPath(u string) string {
	query, ok := strings.CutPrefix(u, g.cfg.BasePath+downloadPath+"?")
	if !ok {
		return ""
	}
	q, err := url.ParseQuery(query)
	if err != nil {
		return ""
	}
	return q.Get("path")
}

// isPath tells a path of this machine from an address.
func isPath(u string) bool {
	if strings.HasPrefix(u, "//") {
		return false
	}
	return slices.ContainsFunc([]string{"/", "./", "../", "~/", "file://"}, func(root string) bool { return strings.HasPrefix(u, root) })
}

// withoutPath is media that keeps of a path what tells readers something, and nothing of the machine.
func withoutPath(m event.Media) event.Media {
	if m.Name == "" && isPath(m.URL) {
		m.Name = files.Name(m.URL)
	}
	m.URL = ""
	return m
}

// putPath stores a copy of a file of the workspace, once as long as nobody writes to it. What can't be had is a Rejection. life
// is that of putFile.
func (w *writer) putPath(ctx context.Context, p Principal, named string, sees func(string) bool, life time.Duration) (event.Media, error) {
	workspace := w.g.cfg.Workspace
	if at := w.g.servedPath(named); at != "" {
		named = at
	}
	f, err := workspace.Open(named, sees)
	switch {
	case errors.Is(err, files.ErrOutside):
		return event.Media{}, reject(ReasonFile, "it is not below the workspace")
	case err != nil:
		return event.Media{}, reject(ReasonFile, "there is no such file in the workspace")
	}
	defer f.Close()
	if m, ok, err := w.findFile(ctx, f.Origin); err != nil || ok {
		return m, err
	}
	name, _ := workspace.Clean(named) // it was opened
	return w.putFile(ctx, p, agent.File{Name: f.Name, MIME: files.ByName(f.Name), Origin: f.Origin, Path: name}, f, life)
}

// bare takes paths out of what was held back until the turn's end, when nothing is fetched any more.
func (s *sink) bare(ops []event.Event) []event.Event {
	var out []event.Event
	for _, op := range ops {
		if op.Body == nil || op.Body.Media == nil || !s.writer.g.namesPath(op.Body.Media.URL) {
			out = append(out, op)
			continue
		}
		b, m := *op.Body, withoutPath(*op.Body.Media)
		b.Media, op.Body = &m, &b
		why := op
		why.Type = event.PartUpdate
		why.Body = &event.Body{State: event.PartFailed, Error: &event.Error{Code: ReasonFile, Message: "the turn ended before it could be fetched"}}
		out = append(out, op, why)
	}
	return out
}

// PutPath implements [agent.WorkspaceSink].
func (s *sink) PutPath(ctx context.Context, named string) (event.Media, error) {
	if s.writer.g.cfg.Workspace == nil || s.writer.g.cfg.Files == nil {
		return event.Media{}, agent.ErrNoFiles
	}
	return s.writer.putPath(ctx, s.speaker(), named, shows(s.input.Principal), 0)
}

// FilePath implements [agent.WorkspaceSink].
func (s *sink) FilePath(ctx context.Context, m event.Media) string {
	id := fileID(m.URL, s.writer.id)
	if s.writer.g.cfg.Workspace == nil || id == "" {
		return ""
	}
	v, err := s.writer.g.journal.Get(ctx, journalkey.File(s.writer.id, id))
	var rec file
	if err != nil || json.Unmarshal(v, &rec) != nil || rec.Path == "" {
		return ""
	}
	f, err := s.writer.g.cfg.Workspace.Open(rec.Path, shows(s.input.Principal))
	if err != nil {
		return ""
	}
	_ = f.Close() // nothing was written
	return s.writer.g.cfg.Workspace.Path(rec.Path)
}

// withoutPaths returns a command whose message shows the files that it names by paths of the workspace: in lines that say
// MEDIA:/path, and in parts of kind media. Those that can't be had say why.
func (w *writer) withoutPaths(ctx context.Context, p Principal, c Command) (Command, error) {
	if c.Message == nil || w.g.cfg.Workspace == nil || w.g.cfg.Files == nil {
		return c, nil
	}
	m := *c.Message
	text, named := mediaLines(m.Text)
	m.Text, m.Parts = text, slices.Clone(m.Parts)
	for _, n := range named {
		m.Parts = append(m.Parts, event.Part{Kind: event.KindMedia, Media: &event.Media{URL: n}})
	}
	for i, part := range m.Parts {
		if part.Media == nil || !w.g.namesPath(part.Media.URL) {
			continue
		}
		media, err := w.putPath(ctx, p, part.Media.URL, reads(p), uploadLife)
		var refused *Rejection
		switch {
		case err == nil:
			if part.Media.Alt != "" {
				media.Alt = part.Media.Alt
			}
		case errors.As(err, &refused) && refused.Reason == ReasonFile:
			media = withoutPath(*part.Media)
			if c.missing == nil {
				c.missing = map[int]*event.Error{}
			}
			c.missing[i] = &event.Error{Code: refused.Reason, Message: refused.Message}
		default:
			return c, err
		}
		m.Parts[i].Media = &media
	}
	c.Message = &m
	return c, nil
}

// say adds a message, and says of its parts whose file is missing why that is so.
func (t *tx) say(m event.Event, c Command) int64 {
	seq := t.add(m)
	first := len(m.Body.Parts) - len(c.Message.Parts) // its text may be a part before them
	for i := range c.Message.Parts {
		why := c.missing[i]
		if why == nil {
			continue
		}
		id := m.Body.Parts[first+i].ID
		if id == "" {
			id = fmt.Sprintf("p%d", first+i+1) // as the fold calls it
		}
		seq = t.add(event.Event{Type: event.PartUpdate, Message: m.Message, Part: id, Body: &event.Body{State: event.PartFailed, Error: why}})
	}
	return seq
}

// mediaToken begins a line that names a file.
const mediaToken = "MEDIA:"

// mediaLines takes the lines that name a file by its path out of a text, but none that stand in fenced code.
func mediaLines(text string) (rest string, named []string) {
	if !strings.Contains(text, mediaToken) {
		return text, nil
	}
	var kept []string
	fence := ""
	for line := range strings.SplitSeq(text, "\n") {
		t := strings.TrimSpace(line)
		mark := t[:len(t)-len(strings.TrimLeft(t, "`~"))]
		switch {
		case fence == "" && len(mark) >= 3 && strings.Count(mark, mark[:1]) == len(mark):
			fence = mark
		case fence != "" && t == mark && strings.HasPrefix(t, fence):
			fence = ""
		case fence == "":
			if at, ok := strings.CutPrefix(t, mediaToken); ok {
				if at = strings.Trim(strings.TrimSpace(at), "`\"'"); isPath(at) {
					named = append(named, at)
					continue
				}
			}
		}
		kept = append(kept, line)
	}
	if named == nil {
		return text, nil
	}
	return strings.TrimSpace(strings.Join(kept, "\n")), named
}
