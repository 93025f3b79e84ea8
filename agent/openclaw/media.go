// Files in histories and frames: which of them a message shows, how they are named, and which still have to be copied.

package openclaw

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/leat-dev/leat/agent/internal/call"
	"github.com/leat-dev/leat/event"
)

// mediaPart is a part that shows a file. It begins with the file's name; the address follows when the file is copied. It is
// stored in turnState.
type mediaPart struct {
	Run     string `json:"run"`
	Message string `json:"message"`
	Part    string `json:"part"`
	Path    string `json:"path,omitempty"` // as the agent wrote it
	Name    string `json:"name"`
	Done    bool   `json:"done,omitempty"`
}

// codeFile is the error code of a part whose file can't be fetched.
const codeFile = "file_unavailable"

// withoutPath returns the event without the path if it begins a file's part, and the part with the path; other events are
// returned unchanged with nil. The path is one of the gateway's machine: useless to viewers, and possibly confidential.
func withoutPath(op event.Event) (event.Event, *mediaPart) {
	if op.Type != event.PartStart || op.Get().Kind != event.KindMedia || op.Body.Media == nil {
		return op, nil
	}
	b := *op.Body
	public := *b.Media
	m := &mediaPart{Run: op.Turn, Message: op.Message, Part: op.Part, Path: public.URL, Name: baseName(public.URL)}
	if !isWeb(public.URL) {
		public.URL = ""
	}
	public.Name = cmp.Or(public.Name, m.Name)
	b.Media = &public
	op.Body = &b
	return op, m
}

// isWeb reports whether an address is an HTTP URL, which viewers can open themselves.
func isWeb(address string) bool {
	return strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "http://")
}

// baseName returns the last element of a path or of a URL's path, or "file".
func baseName(p string) string {
	if u, err := url.Parse(p); err == nil && isWeb(p) {
		p = u.Path
	}
	if name := path.Base(strings.ReplaceAll(p, "\\", "/")); name != "." && name != "/" {
		return name
	}
	return "file"
}

// historyFile is a file that a row names.
type historyFile struct {
	block
	id string // identifies the file in all histories
}

// filesOf returns the files in a run's rows. Each has an id that is the same in every history, so that it is shown once.
func filesOf(rows []row) []historyFile {
	var files []historyFile
	for i := range rows {
		if rows[i].Role != "assistant" {
			continue
		}
		for _, b := range rows[i].blocks() {
			if b.Source != nil && b.Data == "" {
				b.Data = b.Source.Data
				b.MIME = cmp.Or(b.MIME, b.Source.MIME)
			}
			switch {
			case b.Artifact != "":
				files = append(files, historyFile{b, b.Artifact})
			case b.Data != "" && b.Type != "text":
				sum := sha256.Sum256([]byte(b.Data))
				files = append(files, historyFile{b, "sha256:" + hex.EncodeToString(sum[:8])})
			case strings.HasPrefix(b.URL, "/api/"):
				files = append(files, historyFile{b, b.URL})
			case b.Attachment != nil && b.Type == "attachment_error":
				b.Alt = b.Attachment.Label
				files = append(files, historyFile{b, "error:" + b.Attachment.Label})
			}
		}
	}
	return files
}

// copyFiles copies the files of a run into Leat's store, and adds parts for files that only its rows name. A file that can't be
// copied gets the reason in its part.
//
// The first loop is for files that the answer's text names: each is searched on this machine, and then among the files of the
// rows. A file of the rows that is used this way is removed from them, so that the second loop doesn't show it again. The second
// loop adds a part, and the message if the run has none, for every remaining file.
func (t *turn) copyFiles(ctx context.Context, conn *connection, r *run, rows []row) {
	historyFiles := filesOf(rows)
	for _, m := range t.st.Media {
		if m.Done || m.Run == t.in.Key && m.Message != r.ID {
			continue
		}
		file, err := t.storeLocal(ctx, m.Path)
		if i := matchFile(historyFiles, m); err != nil && i >= 0 { // the gateway may have a copy
			file, err = t.fetch(ctx, conn, historyFiles[i])
			historyFiles = append(historyFiles[:i], historyFiles[i+1:]...)
		}
		t.updateFile(ctx, m, file, err)
	}
	for _, p := range historyFiles {
		key := "file:" + p.id
		if t.hasPart(key) {
			continue
		}
		m := &mediaPart{Run: t.in.Key, Message: r.ID, Part: key, Name: p.name()}
		ops := []event.Event{
			{Type: event.PartStart, Message: r.ID, Part: key, Body: &event.Body{Kind: event.KindMedia, Media: &event.Media{Name: m.Name, MIME: p.MIME}}},
			{Type: event.PartEnd, Message: r.ID, Part: key},
		}
		if !r.HasMessage {
			r.HasMessage = true
			ops = append([]event.Event{{Type: event.MessageStart, Message: r.ID, Body: &event.Body{Role: event.Assistant}}}, ops...)
		}
		if err := t.emit(m, ops); err != nil {
			return
		}
		file, err := t.fetch(ctx, conn, p)
		t.updateFile(ctx, m, file, err)
	}
}

// lacksFiles reports whether a run shows files that are neither on this machine nor in its history yet. With a media_root,
// files are expected there and not waited for.
func (t *turn) lacksFiles(ctx context.Context, r *run, historyFiles []historyFile) bool {
	n := 0
	for _, m := range t.st.Media {
		if !m.Done && m.Message == r.ID && m.Path != "" && !isWeb(m.Path) {
			if _, err := t.storeLocal(ctx, m.Path); err != nil {
				n++
			}
		}
	}
	return n > len(historyFiles) && t.a.root == nil
}

// hasPart reports whether the turn has a file's part with that key.
func (t *turn) hasPart(key string) bool {
	return slices.ContainsFunc(t.st.Media, func(m *mediaPart) bool { return m.Part == key })
}

// matchFile returns the index of the file in a history that a part shows: the one with its name, or else the only one. If no file
// matches, the index is -1.
func matchFile(historyFiles []historyFile, m *mediaPart) int {
	for i, p := range historyFiles {
		if p.Alt == m.Name || p.Name == m.Name {
			return i
		}
	}
	if len(historyFiles) == 1 {
		return 0
	}
	return -1
}

// name returns a name for viewers.
func (p *historyFile) name() string {
	for _, name := range []string{p.Name, p.Alt} {
		if name != "" {
			return baseName(name)
		}
	}
	if strings.HasPrefix(p.MIME, "image/") {
		return "image"
	}
	return "file"
}

// fileError returns why a file can't be shown, for viewers. It contains only the kind of failure; err may contain paths and
// addresses, and is only logged.
func fileError(name string, err error) *event.Error {
	message := name + " could not be fetched"
	switch {
	case errors.Is(err, errSlow):
		message += ": it took too long"
	case errors.Is(err, errLarge):
		message += ": it is too large"
	default:
		message = call.WithCause(message, err)
	}
	return &event.Error{Code: codeFile, Message: message}
}

// updateFile adds the file's address to its part, or the error err. If a web address could not be copied, the part stays as it is,
// because viewers can open that address themselves. If ctx has expired, the reason that viewers see is that the file took too long.
func (t *turn) updateFile(ctx context.Context, m *mediaPart, file event.Media, err error) {
	if ctx.Err() != nil && err != nil {
		err = errSlow
	}
	b := &event.Body{Media: &file}
	if err != nil {
		if isWeb(m.Path) {
			m.Done = true
			return // viewers have its address
		}
		e := fileError(m.Name, err)
		b = &event.Body{Media: &event.Media{Name: m.Name, Alt: e.Message}, Error: e}
		t.emitter.Log().Info("could not fetch a file of the agent", "name", m.Name, "error", err)
	}
	m.Done = true
	op := event.Event{Type: event.PartUpdate, Turn: m.Run, Message: m.Message, Part: m.Part, Body: b}
	if err := t.step(func() ([]event.Event, error) { return []event.Event{op}, nil }); err != nil && ctx.Err() == nil {
		t.emitter.Log().Warn("could not show a file", "name", m.Name, "error", err)
	}
}
