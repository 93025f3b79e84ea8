package openclaw

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
	"path"
	"strings"

	"github.com/leat-dev/leat/agent/internal/call"
	"github.com/leat-dev/leat/event"
)

// media is a file that a run has shown. Its part begins with the name alone; where the bytes are comes later.
type media struct {
	Run     string `json:"run"`
	Message string `json:"message"`
	Part    string `json:"part"`
	Path    string `json:"path,omitempty"` // as the agent named it
	Name    string `json:"name"`
	Done    bool   `json:"done,omitempty"`
}

// codeFile is the error of a media part whose file can't be had.
const codeFile = "file_unavailable"

// mediaStarts returns the file that an operation begins to show, with the whole path by which the agent named it, and the
// operation without the path: it is one of the gateway's machine, and leads readers nowhere. All others it returns as they are.
func mediaStarts(op event.Event) (event.Event, *media) {
	if op.Type != event.PartStart || op.Get().Kind != event.KindMedia || op.Body.Media == nil {
		return op, nil
	}
	b := *op.Body
	shown := *b.Media
	m := &media{Run: op.Turn, Message: op.Message, Part: op.Part, Path: shown.URL, Name: nameOf(shown.URL)}
	if !isWeb(shown.URL) {
		shown.URL = ""
	}
	if shown.Name == "" {
		shown.Name = m.Name
	}
	b.Media = &shown
	op.Body = &b
	return op, m
}

func isWeb(address string) bool {
	return strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "http://")
}

// nameOf is the last element of a path or address.
func nameOf(p string) string {
	if u, err := url.Parse(p); err == nil && isWeb(p) {
		p = u.Path
	}
	if name := path.Base(strings.ReplaceAll(p, "\\", "/")); name != "." && name != "/" {
		return name
	}
	return "file"
}

// picture is a file that a history names.
type picture struct {
	block
	id string // the same for the same file
}

// pictures are the files of a run's rows.
func pictures(rows []row) []picture {
	var all []picture
	for i := range rows {
		if rows[i].Role != "assistant" {
			continue
		}
		for _, b := range rows[i].blocks() {
			if b.Source != nil && b.Data == "" {
				b.Data = b.Source.Data
				if b.MIME == "" {
					b.MIME = b.Source.MIME
				}
			}
			switch {
			case b.Artifact != "":
				all = append(all, picture{b, b.Artifact})
			case b.Data != "" && b.Type != "text":
				sum := sha256.Sum256([]byte(b.Data))
				all = append(all, picture{b, "sha256:" + hex.EncodeToString(sum[:8])})
			case strings.HasPrefix(b.URL, "/api/"):
				all = append(all, picture{b, b.URL})
			case b.Attachment != nil && b.Type == "attachment_error":
				b.Alt = b.Attachment.Label
				all = append(all, picture{b, "error:" + b.Attachment.Label})
			}
		}
	}
	return all
}

// files copies the files of a run into the store, and shows those that only its history names. Where one can't be had its part
// says why.
func (t *turn) files(ctx context.Context, l *link, r *run, rows []row) {
	named := pictures(rows)
	for _, m := range t.st.Media {
		if m.Done || m.Run == t.in.Key && m.Message != r.ID {
			continue
		}
		stored, err := t.local(ctx, m.Path)
		if i := match(named, m); err != nil && i >= 0 { // OpenClaw itself may have it
			stored, err = t.fetch(ctx, l, named[i])
			named = append(named[:i], named[i+1:]...)
		}
		t.shown(ctx, m, stored, err)
	}
	for _, p := range named {
		key := "file:" + p.id
		if t.hasPart(key) {
			continue
		}
		m := &media{Run: t.in.Key, Message: r.ID, Part: key, Name: p.name()}
		ops := []event.Event{
			{Type: event.PartStart, Message: r.ID, Part: key, Body: &event.Body{Kind: event.KindMedia, Media: &event.Media{Name: m.Name, MIME: p.MIME}}},
			{Type: event.PartEnd, Message: r.ID, Part: key},
		}
		if !r.Begun {
			r.Begun = true
			ops = append([]event.Event{{Type: event.MessageStart, Message: r.ID, Body: &event.Body{Role: event.Assistant}}}, ops...)
		}
		if err := t.emit(m, ops); err != nil {
			return
		}
		stored, err := t.fetch(ctx, l, p)
		t.shown(ctx, m, stored, err)
	}
}

// wanting reports whether a run shows files that its history does not name yet, and that don't lie on this machine.
func (t *turn) wanting(ctx context.Context, r *run, named []picture) bool {
	n := 0
	for _, m := range t.st.Media {
		if !m.Done && m.Message == r.ID && m.Path != "" && !isWeb(m.Path) {
			if _, err := t.local(ctx, m.Path); err != nil {
				n++
			}
		}
	}
	return n > len(named) && t.a.root == nil
}

func (t *turn) hasPart(key string) bool {
	for _, m := range t.st.Media {
		if m.Part == key {
			return true
		}
	}
	return false
}

// match returns which of a history's files is one that was shown: the one of its name, else the only one there is.
func match(named []picture, m *media) int {
	for i, p := range named {
		if p.Alt == m.Name || p.Name == m.Name {
			return i
		}
	}
	if len(named) == 1 {
		return 0
	}
	return -1
}

func (p *picture) name() string {
	for _, name := range []string{p.Name, p.Alt} {
		if name != "" {
			return nameOf(name)
		}
	}
	if strings.HasPrefix(p.MIME, "image/") {
		return "image"
	}
	return "file"
}

// fileError returns why a file can't be had, as readers get it: the kind of the failure. Its text may hold paths and addresses, which
// are for the log.
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

// shown says in a file's part where its bytes are, or why they are nowhere.
func (t *turn) shown(ctx context.Context, m *media, stored event.Media, err error) {
	if ctx.Err() != nil && err != nil {
		err = errSlow
	}
	b := &event.Body{Media: &stored}
	if err != nil {
		if isWeb(m.Path) {
			m.Done = true
			return // readers have its address
		}
		e := fileError(m.Name, err)
		b = &event.Body{Media: &event.Media{Name: m.Name, Alt: e.Message}, Error: e}
		t.out.Log().Info("a file of the agent could not be fetched", "name", m.Name, "error", err)
	}
	m.Done = true
	op := event.Event{Type: event.PartUpdate, Turn: m.Run, Message: m.Message, Part: m.Part, Body: b}
	if err := t.step(func() ([]event.Event, error) { return []event.Event{op}, nil }); err != nil && ctx.Err() == nil {
		t.out.Log().Warn("a file is not shown", "name", m.Name, "error", err)
	}
}
