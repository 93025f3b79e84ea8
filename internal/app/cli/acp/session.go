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

// session is an open session. One goroutine, that of follow, uses the writer.
type session struct {
	agent      *Agent
	id         string // of the conversation
	agents     []leat.Agent
	replaysAll bool // the editor gets the history
	writer     *writer

	ready   chan struct{} // closed when the editor has what existed when the session was opened
	closing chan struct{} // closed to end the session
	ended   chan struct{} // closed when follow has returned

	mu         sync.Mutex
	isUntitled bool
	current    string // the agent of the next prompt
	isChosen   bool   // the user has chosen it, so it may not be that of the conversation
	own        map[string]bool
	prompts    map[*prompt]bool
	asked      map[string]context.CancelFunc // the questions that the editor shows, by turn and request
	abandoned  map[string]bool               // messages of canceled prompts that the gateway may get
	question   *question                     // the next prompt answers it
	running    []string                      // unfinished turns, the oldest first
	err        error                         // why follow has ended
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
	return s.agent.conn.Notify("session/update", map[string]any{"sessionId": s.id, "update": update})
}

// isOwn reports whether a message was sent as a prompt of this session.
func (s *session) isOwn(message string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own[message]
}

// follow sends what happens in the conversation until the connection or the session ends, or the gateway refuses the conversation.
//
// The client reconnects by itself and delivers every state, so the editor doesn't notice a lost connection or a gateway that restarts. A slow
// editor blocks the writes, and the gateway then merges what it hasn't read.
func (s *session) follow(ctx context.Context) {
	defer close(s.ended)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.agent.conn.Go(func(context.Context) {
		select {
		case <-s.closing:
			cancel()
		case <-ctx.Done():
		}
	})
	isFirst, isLost := true, false
	o := leat.FollowOptions{OnDisconnect: func(err error, next time.Duration) {
		if !isLost {
			s.agent.Log.Warn("connection lost; reconnecting", "error", err)
		}
		isLost = true
	}}
	err := s.agent.Client.FollowWith(ctx, s.id, o, func(u leat.Update) error {
		if u.Connected {
			if isLost {
				s.agent.Log.Info("connected")
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
		page, err := s.agent.Client.Page(ctx, s.id, before, 0)
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
	s.running = s.running[:0]
	for _, turn := range t.Turns {
		if turn.Unfinished() && turn.Independent() {
			s.running = append(s.running, turn.ID)
		}
	}
	s.stopAbandoned(t)
	for p := range s.prompts {
		s.resolve(t, p)
	}
	return nil
}

// finish ends what waits for the session.
func (s *session) finish(err error) {
	if err == nil {
		err = errors.New("the conversation can't be followed")
	}
	err = s.agent.fail(err)
	s.agent.mu.Lock()
	if s.agent.sessions[s.id] == s {
		delete(s.agent.sessions, s.id)
	}
	s.agent.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	for p := range s.prompts {
		p.end(promptResult{}, err)
	}
	for _, withdraw := range s.asked {
		withdraw()
	}
}

// maxPicture is the limit of a picture that is sent to the editor, in bytes. Larger ones are links.
const maxPicture = 8 << 20

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
		_, err := s.agent.Client.File(ctx, m, &b)
		switch {
		case err == nil && b.Len() <= maxPicture:
			return block{Type: "image", Data: base64.StdEncoding.EncodeToString(b.Bytes()), MIME: m.MIME}
		case err != nil && !errors.Is(err, leat.ErrForeign):
			s.agent.Log.Warn("picture not loaded", "conversation", s.id, "error", err)
		}
	}
	return block{Type: "resource_link", URI: s.address(m.URL), Name: m.Name, MIME: m.MIME, Size: m.Size}
}

// address returns the absolute address of a file.
func (s *session) address(file string) string {
	base, err := url.Parse(s.agent.Client.URL)
	if err != nil {
		return file
	}
	absolute, err := base.Parse(file)
	if err != nil {
		return file
	}
	return absolute.String()
}
