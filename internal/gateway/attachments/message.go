package attachments

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
)

// Receive implements [gateway.Attachments]. It stores the files in commits before that of the message, because the writer of the
// conversation must not wait for the disk. A file that can't be read doesn't fail the command: the message shows an error in its place.
func (s *Store) Receive(ctx context.Context, c gateway.Updater, p gateway.Principal, m gateway.CommandMessage) (gateway.CommandMessage, map[int]*event.Error, error) {
	m.Parts = slices.Clone(m.Parts)
	// Files from data URLs never expire, because a repeat of the command must find them.
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

// receiveNamed stores the files that a message names by paths of the workspace, in lines that begin with MEDIA: and in parts of kind
// media. It removes the lines from the text and adds a part for each. missing has an error for each part whose file can't be read, by the
// index of the part. Such a part keeps the file's name but loses the path, which viewers must not see. Other errors, such as an exceeded
// quota, fail the command.
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
		rejection, isRejected := errors.AsType[*gateway.Rejection](err)
		switch {
		case err == nil:
			media.Alt = cmp.Or(part.Media.Alt, media.Alt)
		case isRejected && rejection.Reason == gateway.ReasonFile:
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

// putData stores the bytes of a data URL. It returns other media unchanged, such as those with a link to another server.
func (s *Store) putData(ctx context.Context, c conversation, m event.Media) (event.Media, error) {
	f, r, err := openData(m)
	if err != nil {
		return m, nil
	}
	return s.putFile(ctx, c, f, r)
}

// mediaToken begins a line that names a file. docs/files.md describes the syntax, which OpenClaw's agents use.
const mediaToken = "MEDIA:"

// cutMediaLines removes the lines of a text that name a file, such as MEDIA:./plot.png, and returns the paths in their order. Lines in
// fenced code blocks stay, because they quote the syntax. As in CommonMark, a fence is a line of at least three backticks or tildes,
// and only a fence of the same character and at least the same length closes it. fence is the one that is open, or empty.
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
