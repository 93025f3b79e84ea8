package attachments

import (
	"encoding/base64"
	"errors"
	"io"
	"net/url"
	"strings"

	"github.com/leat-dev/leat/internal/store/files"
)

// downloadPath is the path under which files of the workspace are served. Their own path is in the query.
const downloadPath = "/api/files/download"

// url returns the path under which a file of a conversation is served.
func (s *Store) url(conversation, id string) string {
	return s.basePath + "/api/conversations/" + url.PathEscape(conversation) + "/files/" + id
}

// fileID returns the id of the conversation's file that a URL names, and an empty string for other URLs. It ignores the host and the base
// path, because they may have been others when the URL was written.
func fileID(u, conversation string) string {
	_, id, ok := strings.Cut(u, "/api/conversations/"+url.PathEscape(conversation)+"/files/")
	if !ok || !files.ValidID(id) {
		return ""
	}
	return id
}

// pathURL returns the URL under which a file of the workspace is served.
func (s *Store) pathURL(name string) string {
	return s.basePath + downloadPath + "?path=" + url.QueryEscape(s.workspace.Path(name))
}

// namesPath reports whether a URL of media is a path of the workspace, or the URL under which one is served.
func (s *Store) namesPath(u string) bool {
	if s.workspace == nil || u == "" {
		return false
	}
	return s.servedPath(u) != "" || isPath(u) && !strings.HasPrefix(u, s.basePath+"/api/")
}

// servedPath returns the path in a URL under which a file of the workspace is served, and an empty string for other URLs.
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

// isPath reports whether a URL is a path on this machine.
func isPath(u string) bool {
	if strings.HasPrefix(u, "//") {
		return false
	}
	for _, root := range []string{"/", "./", "../", "~/", "file://"} {
		if strings.HasPrefix(u, root) {
			return true
		}
	}
	return false
}

// dataPrefix begins a URL that carries its bytes.
const dataPrefix = "data:"

var errNotData = errors.New("attachments: not a data URL")

// openData returns a reader of the bytes in a data URL (RFC 2397), which may be in base64 or percent-encoded.
func openData(u string) (mime string, r io.Reader, err error) {
	encoded, ok := strings.CutPrefix(u, dataPrefix)
	if !ok {
		return "", nil, errNotData
	}
	head, data, ok := strings.Cut(encoded, ",")
	if !ok {
		return "", nil, errNotData
	}
	if mime, ok = strings.CutSuffix(head, ";base64"); ok {
		enc := base64.StdEncoding
		if !strings.HasSuffix(data, "=") && len(data)%4 != 0 {
			enc = base64.RawStdEncoding
		}
		return mime, base64.NewDecoder(enc, strings.NewReader(data)), nil
	}
	plain, err := url.PathUnescape(data)
	if err != nil {
		return "", nil, errNotData
	}
	return mime, strings.NewReader(plain), nil
}
