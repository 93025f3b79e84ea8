// The files of a conversation are found by their id, which is a digest of the bytes, or by their origin. The record in the journal decides
// whether a file exists: bytes without a record are as good as deleted. The URLs of files contain
// the conversation and an id that can't be guessed, and are checked like any other request.

package attachments

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/internal/journalkey"
	"github.com/leat-dev/leat/internal/store/files"
)

// open opens a file of a conversation and returns the media that describe it. The caller closes the file. If the id is malformed, or the
// record or the file is missing, the error is [gateway.ErrNotFound]. open doesn't check access.
func (s *Store) open(ctx context.Context, conversation, id string) (*os.File, event.Media, error) {
	if !files.ValidID(id) {
		return nil, event.Media{}, gateway.ErrNotFound
	}
	rec, err := s.lookUp(ctx, conversation, id)
	if err != nil {
		return nil, event.Media{}, err
	}
	f, err := s.files.Open(conversation, id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, event.Media{}, gateway.ErrNotFound // a backup may have been restored without its files
	}
	if err != nil {
		return nil, event.Media{}, err
	}
	return f, s.media(conversation, id, &rec), nil
}

// lookUp returns the record of a file. If it doesn't exist or has expired, the error is [gateway.ErrNotFound].
func (s *Store) lookUp(ctx context.Context, conversation, id string) (rec record, err error) {
	v, err := s.journal.Get(ctx, journalkey.File(conversation, id))
	if err != nil {
		return rec, gateway.JournalError("look up file", err)
	}
	if err := json.Unmarshal(v, &rec); err != nil {
		return rec, fmt.Errorf("attachments: record of file %s: %w", id, err)
	}
	return rec, nil
}

// find returns the file that was stored in a conversation from an origin, such as a URL or a version of a workspace file, so that the
// same file isn't stored twice. ok is false if the origin is unknown or its file was removed.
func (s *Store) find(ctx context.Context, conversation, origin string) (m event.Media, ok bool, err error) {
	id, err := s.journal.Get(ctx, journalkey.FileOrigin(conversation, origin))
	if err != nil {
		err = gateway.JournalError("look up file", err)
	} else {
		var f *os.File
		if f, m, err = s.open(ctx, conversation, string(id)); err == nil {
			return m, true, f.Close()
		}
	}
	if errors.Is(err, gateway.ErrNotFound) {
		return event.Media{}, false, nil
	}
	return event.Media{}, false, err
}

// downloadPath is the path under which files of the workspace are served. Their own path is in the query.
const downloadPath = "/api/files/download"

// url returns the path under which a file of a conversation is served. Logs contain these paths, so fileID must recognize all earlier forms.
func (s *Store) url(conversation, id string) string {
	return s.basePath + "/api/conversations/" + url.PathEscape(conversation) + "/files/" + id
}

// fileID returns the id of the conversation's file that a URL names, and an empty string for other URLs. It ignores the host and the base
// path, because the gateway may have been configured with other ones when the URL was stored.
func fileID(u, conversation string) string {
	_, id, ok := strings.Cut(u, "/api/conversations/"+url.PathEscape(conversation)+"/files/")
	if !ok || !files.ValidID(id) {
		return ""
	}
	return id
}

// pathURL returns the URL under which a file of the workspace is served. It contains the absolute path, which agents understand too.
func (s *Store) pathURL(name string) string {
	return s.basePath + downloadPath + "?path=" + url.QueryEscape(s.workspace.Path(name))
}

// namesPath reports whether a URL of media is a path of the workspace, or the URL under which one is served. Paths of the gateway's own API
// begin with a slash too, but name no file. Without a workspace it returns false for every URL.
func (s *Store) namesPath(u string) bool {
	if s.workspace == nil || u == "" {
		return false
	}
	return s.servedPath(u) != "" || isPath(u) && !strings.HasPrefix(u, s.basePath+"/api/")
}

// servedPath returns the path in a URL under which a file of the workspace is served, and an empty string for other URLs. Clients get such
// URLs when they upload a file without a conversation, and send them back in messages.
func (s *Store) servedPath(u string) string {
	query, ok := strings.CutPrefix(u, s.basePath+downloadPath+"?")
	if !ok {
		return ""
	}
	q, err := url.ParseQuery(query)
	if err != nil {
		return ""
	}
	return q.Get("path")
}

// isPath reports whether a URL is a path on this machine. A URL that begins with // names a host.
func isPath(u string) bool {
	return !strings.HasPrefix(u, "//") && slices.ContainsFunc([]string{"/", "./", "../", "~/", "file://"}, func(root string) bool {
		return strings.HasPrefix(u, root)
	})
}

// dataPrefix begins a URL that carries its bytes.
const dataPrefix = "data:"

var (
	errNotData   = errors.New("attachments: not a data URL")
	errNotBase64 = errors.New("attachments: invalid base64 in a data URL")
)

// openData describes the file in a data URL (RFC 2397) and returns a reader of its bytes, which may be in base64 or percent-encoded. The
// MIME type of the media takes precedence over that of the URL. Padding of base64 may be missing, because some clients omit it.
func openData(m event.Media) (agent.File, io.Reader, error) {
	encoded, isData := strings.CutPrefix(m.URL, dataPrefix)
	head, data, hasData := strings.Cut(encoded, ",")
	if !isData || !hasData {
		return agent.File{}, nil, errNotData
	}
	mime, isBase64 := strings.CutSuffix(head, ";base64")
	f := agent.File{Name: m.Name, MIME: cmp.Or(m.MIME, mime), Alt: m.Alt}
	if isBase64 {
		enc := base64.StdEncoding
		if !strings.HasSuffix(data, "=") && len(data)%4 != 0 {
			enc = base64.RawStdEncoding
		}
		return f, base64Reader{base64.NewDecoder(enc, strings.NewReader(data))}, nil
	}
	plain, err := url.PathUnescape(data)
	if err != nil {
		return agent.File{}, nil, errNotData
	}
	return f, strings.NewReader(plain), nil
}

// base64Reader distinguishes invalid base64, which the client has sent, from a file that can't be stored.
type base64Reader struct{ io.Reader }

func (r base64Reader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("%w: %w", errNotBase64, err)
	}
	return n, err
}
