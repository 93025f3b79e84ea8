package acp

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"sync"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/jsonrpc"
	"github.com/leat-dev/leat/transcript"
)

// session is an open session, from session/new, load or resume to the end of the connection, a close, a delete, or another load of the same session.
//
// It doesn't end with a prompt: what other clients do in the conversation appears in the editor too. One goroutine, that of follow, uses the writer.
type session struct {
	host *host
	// id is that of the conversation. Editors store it, and load the session by it later.
	id         string
	agents     []leat.Agent
	replaysAll bool // the editor gets the history
	writer     *writer

	ready      chan struct{} // closed when the editor has what existed when the session was opened
	closing    chan struct{} // closed to end the session
	followDone chan struct{} // closed when follow has returned

	mu         sync.Mutex
	isUntitled bool
	// current is the agent of the next prompt, and isChosen says that the user has chosen it in this session. Otherwise the conversation's agent
	// answers, which may be another one by then.
	current  string // the agent of the next prompt
	isChosen bool   // the user has chosen it, so it may not be that of the conversation
	// ownMessages are the ids of messages that were prompts of this session. The editor shows them itself, so they aren't sent back.
	ownMessages map[string]bool
	prompts     map[*prompt]bool
	withdrawals map[string]context.CancelFunc // the questions that the editor shows, by turn and request
	abandoned   map[string]bool               // messages of canceled prompts that the gateway may get
	question    *question                     // the next prompt answers it
	seq         int64                         // up to which the editor has the conversation
	unfinished  []string                      // unfinished turns, the oldest first
	err         error                         // why follow has ended
}

// close ends the session. It may be called once.
func (s *session) close() { close(s.closing) }

// failure returns why the session has ended.
func (s *session) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		return jsonrpc.ErrClosed
	}
	return s.err
}

// notify sends a session/update.
func (s *session) notify(update any) error {
	return s.host.conn.Notify("session/update", map[string]any{"sessionId": s.id, "update": update})
}

// isOwn reports whether a message was sent as a prompt of this session.
func (s *session) isOwn(message string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ownMessages[message]
}

// follow sends what happens in the conversation until the connection or the session ends, or the gateway refuses the conversation.
//
// The client reconnects by itself and delivers every state, so the editor doesn't notice a lost connection or a gateway that restarts. A slow
// editor blocks the writes, and the gateway then merges what it hasn't read.
func (s *session) follow(ctx context.Context) {
	defer close(s.followDone)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.host.conn.Go(func(context.Context) {
		select {
		case <-s.closing:
			cancel()
		case <-ctx.Done():
		}
	})
	isFirst, isLost := true, false
	o := leat.FollowOptions{OnDisconnect: func(err error, next time.Duration) {
		if !isLost {
			s.host.Log.Warn("connection lost; reconnecting", "error", err)
		}
		isLost = true
	}}
	err := s.host.Client.FollowWith(ctx, s.id, o, func(u leat.Update) error {
		if u.Connected {
			if isLost {
				s.host.Log.Info("connected")
			}
			isLost = false
			return nil
		}
		if isFirst {
			if err := s.prepare(ctx, u); err != nil {
				return err
			}
			isFirst = false
			defer close(s.ready)
		}
		return s.update(u.Transcript)
	})
	s.finish(err)
}

// prepare prepares the first update: it loads the history, or skips it.
func (s *session) prepare(ctx context.Context, u leat.Update) error {
	if !s.replaysAll {
		s.writer.skip(u.Transcript)
		return nil
	}
	for u.Transcript.Earlier && len(u.Transcript.Messages) > 0 {
		before := u.Transcript.Messages[0].ID
		page, err := s.host.Client.Page(ctx, s.id, before, 0)
		if err != nil {
			return err
		}
		// A page that doesn't fit is older than the transcript, or of a conversation that was restored meanwhile. The next one fits, or the
		// next connection begins with another snapshot.
		if !u.AddPage(page, before) && page.Epoch == "" {
			return leat.ErrProtocol
		}
	}
	return nil
}

// update sends what is new in a transcript, asks what an agent asks, and answers the prompts whose turns have ended.
func (s *session) update(t *transcript.Transcript) error {
	if err := s.writer.update(t); err != nil {
		return err
	}
	if err := s.ask(t); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq, s.unfinished = t.Seq, s.unfinished[:0]
	for _, turn := range t.Turns {
		if turn.Unfinished() && turn.Independent() {
			s.unfinished = append(s.unfinished, turn.ID)
		}
	}
	s.stopAbandoned(t)
	for p := range s.prompts {
		s.resolve(t, p)
	}
	return nil
}

// finish ends what waits for the session. The gateway has refused the conversation: it was deleted, is no longer shared with the user, or the
// token has expired. Or the session was replaced, or the connection has ended, and then nothing reads the results.
func (s *session) finish(err error) {
	if err == nil {
		err = errors.New("the conversation can't be followed")
	}
	err = s.host.fail(err)
	s.host.mu.Lock()
	if s.host.sessions[s.id] == s {
		delete(s.host.sessions, s.id)
	}
	s.host.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	for p := range s.prompts {
		p.end(promptResult{}, err)
	}
	for _, withdraw := range s.withdrawals {
		withdraw()
	}
}

// maxPicture is the limit of a picture that is sent to the editor, in bytes. Larger ones are links.
const maxPicture = 4 << 20

// pictureLimit is how long loading a picture may take. It delays what follows.
const pictureLimit = 20 * time.Second

// content returns a file as a content block: a picture at the gateway with its bytes, because the editor has no token to load it, and anything
// else as a link.
func (s *session) content(m *event.Media) block {
	if kind, _, _ := strings.Cut(m.MIME, "/"); kind == "image" && m.Size <= maxPicture {
		if head, data, ok := strings.Cut(m.URL, ";base64,"); ok && strings.HasPrefix(head, "data:") {
			return block{Type: "image", Data: data, MIME: m.MIME}
		}
		var b bytes.Buffer
		ctx, cancel := context.WithTimeout(context.Background(), pictureLimit)
		defer cancel()
		_, err := s.host.Client.File(ctx, m, &b)
		switch {
		case err == nil && b.Len() <= maxPicture:
			return block{Type: "image", Data: base64.StdEncoding.EncodeToString(b.Bytes()), MIME: m.MIME}
		case err != nil && !errors.Is(err, leat.ErrForeign):
			s.host.Log.Warn("picture not loaded", "conversation", s.id, "error", err)
		}
	}
	return block{Type: "resource_link", URI: s.address(m.URL), Name: m.Name, MIME: m.MIME, Size: m.Size}
}

// address returns the absolute address of a file. The gateway's own addresses are paths, unless it has a public URL.
func (s *session) address(file string) string {
	base, err := url.Parse(s.host.Client.URL)
	if err != nil {
		return file
	}
	absolute, err := base.Parse(file)
	if err != nil {
		return file
	}
	return absolute.String()
}
