// Getting the files that a run produced: from the workspace if it is on this machine, and otherwise as artifacts of the gateway or
// from their URLs.

package openclaw

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
)

// maxFile is the size of the largest file that is fetched, in bytes. The store has a separate limit.
const maxFile = 64 << 20

// errNoSource is the error for a file that neither the gateway nor the local disk provides.
var errNoSource = errors.New("OpenClaw doesn't serve the file, and media_root is not set")

// storeLocal stores a file that is on this machine, below media_root or in the workspace. media_root is tried first, because the
// operator has named it for the gateway's files. If both were tried and failed, the error contains the errors of both.
func (t *turn) storeLocal(ctx context.Context, p string) (event.Media, error) {
	if p == "" || isWeb(p) {
		return event.Media{}, errNoSource
	}
	m, err := t.storeBelowRoot(ctx, p)
	if err == nil {
		return m, nil
	}
	m, werr := t.emitter.PutPath(ctx, p)
	if errors.Is(werr, agent.ErrNoFiles) {
		return m, err
	}
	if werr != nil && t.a.root != nil {
		werr = fmt.Errorf("%w, and %w", err, werr)
	}
	return m, werr
}

// storeBelowRoot stores a file below media_root. The path is one of the gateway's machine, on which the folder may have
// another name, so every suffix of the path is tried, the longest first. os.Root keeps links from leading out of the folder.
func (t *turn) storeBelowRoot(ctx context.Context, p string) (event.Media, error) {
	if t.a.root == nil {
		return event.Media{}, errNoSource
	}
	p = strings.TrimPrefix(p, "file://")
	elements := strings.Split(strings.Trim(path.Clean("/"+strings.TrimPrefix(p, "~")), "/"), "/")
	for i := range elements {
		name := path.Join(elements[i:]...)
		info, err := t.a.root.Stat(name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() { // opening a pipe would block
			continue
		}
		var f *os.File
		if err == nil {
			f, err = t.a.root.Open(name)
		}
		if err != nil {
			return event.Media{}, fmt.Errorf("below media_root: %w", rootCause(err))
		}
		defer f.Close()
		// The agent may overwrite the file later, so the path alone doesn't identify its content.
		origin := fmt.Sprintf("%s %d %d", name, info.Size(), info.ModTime().UnixNano())
		return t.storeFile(ctx, agent.File{Name: path.Base(name), Origin: origin}, f)
	}
	return event.Media{}, errors.New("the file is not below media_root")
}

// storeFile stores a file unless one with the same origin is already stored.
func (t *turn) storeFile(ctx context.Context, f agent.File, r io.Reader) (event.Media, error) {
	if m, ok, err := t.emitter.FindFile(ctx, f.Origin); err == nil && ok {
		return m, nil
	}
	return t.emitter.PutFile(ctx, f, &limitedReader{r: r, remaining: maxFile})
}

// limitedReader fails with errLarge if more than remaining bytes are read. io.LimitReader would cut the file silently.
type limitedReader struct {
	r         io.Reader
	remaining int64
}

// Read implements [io.Reader].
func (b *limitedReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.remaining -= int64(n); b.remaining < 0 {
		return 0, errLarge
	}
	return n, err
}

// fetch stores a file that a history names: from the row itself, from the gateway's HTTP address, or from its artifact method.
// If all fail, the error is that of the first attempt. A file that is stored already is found by its origin and not fetched
// again; that happens whenever a history is read twice. The token is only sent to the path of the row, never to the short-lived
// address of an artifact, which needs none.
func (t *turn) fetch(ctx context.Context, conn *connection, p historyFile) (event.Media, error) {
	if p.Attachment != nil {
		return event.Media{}, fmt.Errorf("OpenClaw could not store the file: %s", p.Attachment.Code)
	}
	f := agent.File{Name: p.name(), MIME: p.MIME, Alt: p.Alt, Origin: p.id}
	if m, ok, err := t.emitter.FindFile(ctx, f.Origin); err == nil && ok {
		return m, nil
	}
	if p.Data != "" {
		return t.storeBase64(ctx, f, p.Data)
	}
	var firstErr error
	if strings.HasPrefix(p.URL, "/") {
		m, err := t.download(ctx, f, p.URL, t.a.config.Token)
		if err == nil {
			return m, nil
		}
		firstErr = err
	}
	if p.Artifact != "" {
		m, err := t.artifact(ctx, conn, f, p.Artifact)
		if err == nil {
			return m, nil
		}
		if firstErr == nil {
			firstErr = err
		}
	}
	if firstErr == nil {
		firstErr = errNoSource
	}
	return event.Media{}, firstErr
}

// artifact requests a file from the gateway. The response has the bytes, or a short-lived address that needs no token.
func (t *turn) artifact(ctx context.Context, conn *connection, f agent.File, id string) (event.Media, error) {
	var a struct {
		Data string `json:"data"`
		URL  string `json:"url"`
	}
	if err := conn.call(ctx, "artifacts.download", map[string]string{"sessionKey": t.session, "artifactId": id}, &a); err != nil {
		return event.Media{}, err
	}
	switch {
	case a.Data != "":
		return t.storeBase64(ctx, f, a.Data)
	case strings.HasPrefix(a.URL, "/"):
		return t.download(ctx, f, a.URL, "")
	}
	return event.Media{}, errNoSource
}

// storeBase64 stores a file from base64, which may be a data URL.
func (t *turn) storeBase64(ctx context.Context, f agent.File, data string) (event.Media, error) {
	if _, encoded, ok := strings.Cut(data, ";base64,"); ok && strings.HasPrefix(data, "data:") {
		data = encoded
	}
	b, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return event.Media{}, fmt.Errorf("invalid base64: %w", err)
	}
	return t.storeFile(ctx, f, bytes.NewReader(b))
}

// download stores a file from a path of the gateway's HTTP server. It refuses other hosts, because a row could otherwise make
// Leat send requests, with the token, to any address.
func (t *turn) download(ctx context.Context, f agent.File, ref, token string) (event.Media, error) {
	to, err := t.a.httpBase.Parse(ref)
	if err != nil || to.Host != t.a.httpBase.Host || to.Scheme != t.a.httpBase.Scheme {
		return event.Media{}, errors.New("the file's address is not on the OpenClaw gateway")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return event.Media{}, errors.New("the file's address is invalid")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	req.Header.Set("User-Agent", "Leat")
	res, err := t.a.httpClient.Do(req)
	if err != nil {
		return event.Media{}, fmt.Errorf("download from OpenClaw: %w", rootCause(err))
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return event.Media{}, fmt.Errorf("download from OpenClaw: status %d %s", res.StatusCode, http.StatusText(res.StatusCode))
	}
	f.MIME = cmp.Or(f.MIME, res.Header.Get("Content-Type"))
	return t.storeFile(ctx, f, res.Body)
}
