package attachments

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
)

// Receive implements [gateway.Attachments].
func (s *Store) Receive(ctx context.Context, c gateway.Updater, p gateway.Principal, m gateway.CommandMessage) (gateway.CommandMessage, map[int]*event.Error, error) {
	m.Parts = slices.Clone(m.Parts)
	// Bytes of data URLs are kept as long as the conversation, because a repeat of the command must find them.
	total := conversation{c, p, 0}
	for i, part := range m.Parts {
		if part.Media == nil || !strings.HasPrefix(part.Media.URL, dataPrefix) {
			continue
		}
		media, err := s.putData(ctx, total, *part.Media)
		if err != nil {
			return m, nil, err
		}
		m.Parts[i].Media = &media
	}
	if s.workspace == nil {
		return m, nil, nil
	}
	missing, err := s.receiveNamed(ctx, conversation{c, p, lifetime}, &m)
	return m, missing, err
}

// receiveNamed stores the files that a message names by paths of the workspace: in lines that begin with MEDIA: and in parts of kind
// media. missing has the parts whose file can't be read.
func (s *Store) receiveNamed(ctx context.Context, c conversation, m *gateway.CommandMessage) (missing map[int]*event.Error, err error) {
	text, paths := cutMediaLines(m.Text)
	m.Text = text
	for _, path := range paths {
		m.Parts = append(m.Parts, event.Part{Kind: event.KindMedia, Media: &event.Media{URL: path}})
	}
	for i, part := range m.Parts {
		if part.Media == nil || !s.namesPath(part.Media.URL) {
			continue
		}
		media, err := s.putNamed(ctx, c, part.Media.URL, readableBy(c.principal))
		var rejection *gateway.Rejection
		switch {
		case err == nil:
			if part.Media.Alt != "" {
				media.Alt = part.Media.Alt
			}
		case errors.As(err, &rejection) && rejection.Reason == gateway.ReasonFile:
			media = withoutPath(*part.Media)
			if missing == nil {
				missing = map[int]*event.Error{}
			}
			missing[i] = &event.Error{Code: rejection.Reason, Message: rejection.Message}
		default:
			return missing, err
		}
		m.Parts[i].Media = &media
	}
	return missing, nil
}

// putData stores the bytes of a data URL. Media with another URL are returned as they are.
func (s *Store) putData(ctx context.Context, c conversation, m event.Media) (event.Media, error) {
	mime, r, err := openData(m.URL)
	if err != nil {
		return m, nil
	}
	if m.MIME != "" {
		mime = m.MIME
	}
	return s.putAs(ctx, c, c.principal, agent.File{Name: m.Name, MIME: mime, Alt: m.Alt}, r, c.life)
}

// mediaToken begins a line that names a file.
const mediaToken = "MEDIA:"

// cutMediaLines removes the lines of a text that name a file by its path, and returns the paths. Lines in fenced code stay.
func cutMediaLines(text string) (remainder string, paths []string) {
	if !strings.Contains(text, mediaToken) {
		return text, nil
	}
	var lines []string
	fence := ""
	for line := range strings.SplitSeq(text, "\n") {
		trimmed := strings.TrimSpace(line)
		mark := trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, "`~"))]
		switch {
		case fence == "" && len(mark) >= 3 && strings.Count(mark, mark[:1]) == len(mark):
			fence = mark
		case fence != "" && trimmed == mark && strings.HasPrefix(trimmed, fence):
			fence = ""
		case fence == "":
			if path, ok := strings.CutPrefix(trimmed, mediaToken); ok {
				if path = strings.Trim(strings.TrimSpace(path), "`\"'"); isPath(path) {
					paths = append(paths, path)
					continue
				}
			}
		}
		lines = append(lines, line)
	}
	if paths == nil {
		return text, nil
	}
	return strings.TrimSpace(strings.Join(lines, "\n")), paths
}
