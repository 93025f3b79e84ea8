package wire

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/internal/voice"
)

const (
	// defaultIdle is how long a connection may be open without speech in either direction. A forgotten page shouldn't occupy a microphone.
	defaultIdle = 15 * time.Minute
	// defaultConnections limits the connections at a time. Each may make a few sentences at once.
	defaultConnections = 100
)

// Options configure a [Service]. Log is required.
type Options struct {
	Engine     voice.Engine     // nil: nothing is spoken
	Recognizer voice.Recognizer // nil: nothing is recognised
	// Voice and Language are the defaults of connections, and RecognitionLanguage is the language that people speak.
	Voice, Language, RecognitionLanguage string
	// KeepTurn makes interruptions end only the speech. Otherwise they also stop the turn, unless other people follow the conversation.
	KeepTurn bool
	// Connections and Idle are limits. If one is 0, it has its default.
	Connections int
	Idle        time.Duration
	Log         *slog.Logger
}

// Service serves the voice connections of a gateway.
type Service struct {
	options Options

	mu          sync.Mutex
	connections int
	listeners   map[string]*listener
}

// listener is the current connection of one person to one conversation.
type listener struct {
	cancel context.CancelCauseFunc
	end    chan struct{}
}

// New returns a service.
func New(o Options) *Service {
	o.Connections, o.Idle = cmp.Or(o.Connections, defaultConnections), cmp.Or(o.Idle, defaultIdle)
	return &Service{options: o, listeners: map[string]*listener{}}
}

// Serve serves an accepted connection until the client leaves or ctx ends, and closes it. It returns an error only if something inside
// of the gateway has failed.
func (s *Service) Serve(ctx context.Context, socket *websocket.Conn, r Request, conversation Conversation) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := newConnection(s, socket, r, conversation, cancel)
	leave, err := s.enter(ctx, r.Listener, cancel)
	if err != nil {
		c.close(err)
		return nil
	}
	defer leave()
	return c.serve(ctx)
}

// enter counts a connection, and ends the older one of the same listener.
func (s *Service) enter(ctx context.Context, id string, cancel context.CancelCauseFunc) (leave func(), err error) {
	s.mu.Lock()
	older := s.listeners[id]
	if older == nil && s.connections >= s.options.Connections {
		s.mu.Unlock()
		return nil, errBusy
	}
	l := &listener{cancel: cancel, end: make(chan struct{})}
	s.listeners[id] = l
	s.connections++
	s.mu.Unlock()
	leave = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.connections--
		if s.listeners[id] == l {
			delete(s.listeners, id)
		}
		close(l.end)
	}
	if older != nil {
		older.cancel(errReplaced)
		select {
		case <-older.end:
		case <-ctx.Done():
			leave()
			return nil, context.Cause(ctx)
		}
	}
	return leave, nil
}
