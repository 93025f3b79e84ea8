package openclaw

import (
	"bytes"
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

// maxFile bounds what is fetched of one file; the store has a limit of its own.
const maxFile = 64 << 20

var errNoSource = errors.New("OpenClaw does not hand it out, and there is no media_root to find it in")

// local stores a file that lies on this machine: below media_root, or in the workspace.
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

// belowRoot stores a file that lies below media_root. It is found by the whole of its path there, or by the end of it, since the
// folder may be called otherwise on the gateway's machine.
func (t *turn) storeBelowRoot(ctx context.Context, p string) (event.Media, error) {
	if t.a.root == nil {
		return event.Media{}, errNoSource
	}
	p = strings.TrimPrefix(p, "file://")
	elements := strings.Split(strings.Trim(path.Clean("/"+strings.TrimPrefix(p, "~")), "/"), "/")
	for i := range elements {
		name := path.Join(elements[i:]...)
		info, err := t.a.root.Stat(name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() { // a pipe would be waited for
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
		// The agent may write to the same path again, so that the path alone is not the file.
		origin := fmt.Sprintf("%s %d %d", name, info.Size(), info.ModTime().UnixNano())
		return t.storeFile(ctx, agent.File{Name: path.Base(name), Origin: origin}, f)
	}
	return event.Media{}, errors.New("it is not below media_root")
}

// put stores a file, once.
func (t *turn) storeFile(ctx context.Context, f agent.File, r io.Reader) (event.Media, error) {
	if m, ok, err := t.emitter.FindFile(ctx, f.Origin); err == nil && ok {
		return m, nil
	}
	return t.emitter.PutFile(ctx, f, &limitedReader{r: r, remaining: maxFile})
}

// bounded fails where more is read than it may be.
type limitedReader struct {
	r         io.Reader
	remaining int64
}

func (b *limitedReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.remaining -= int64(n); b.remaining < 0 {
		return 0, errLarge
	}
	return n, err
}

// fetch stores a file that a history names: from the history itself, from the gateway's address for it, or as the gateway
// hands it out over the connection.
func (t *turn) fetch(ctx context.Context, conn *connection, p historyFile) (event.Media, error) {
	if p.Attachment != nil {
		return event.Media{}, fmt.Errorf("OpenClaw could not store it: %s", p.Attachment.Code)
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

// artifact has the gateway hand a file out: the bytes, or an address that is good for a while and holds its own ticket.
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

func (t *turn) storeBase64(ctx context.Context, f agent.File, data string) (event.Media, error) {
	if _, encoded, ok := strings.Cut(data, ";base64,"); ok && strings.HasPrefix(data, "data:") {
		data = encoded
	}
	b, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return event.Media{}, fmt.Errorf("it is no base64: %w", err)
	}
	return t.storeFile(ctx, f, bytes.NewReader(b))
}

// download fetches what the gateway serves under a path of its own, and nothing else.
func (t *turn) download(ctx context.Context, f agent.File, ref, token string) (event.Media, error) {
	to, err := t.a.httpBase.Parse(ref)
	if err != nil || to.Host != t.a.httpBase.Host || to.Scheme != t.a.httpBase.Scheme {
		return event.Media{}, errors.New("its address is not OpenClaw's own")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return event.Media{}, errors.New("its address is invalid")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	req.Header.Set("User-Agent", "Leat")
	res, err := t.a.httpClient.Do(req)
	if err != nil {
		return event.Media{}, fmt.Errorf("OpenClaw does not hand it out: %w", rootCause(err))
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return event.Media{}, fmt.Errorf("OpenClaw answers %d %s to it", res.StatusCode, http.StatusText(res.StatusCode))
	}
	if f.MIME == "" {
		f.MIME = res.Header.Get("Content-Type")
	}
	return t.storeFile(ctx, f, res.Body)
}
