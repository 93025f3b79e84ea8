package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/jsonrpc"
)

// Options describe what serves an editor. All fields but AgentName are required.
type Options struct {
	Client *leat.Client
	// AgentName is the agent of new sessions. If it is empty, the gateway's default answers.
	AgentName string
	Version   string // of the program
	Input     io.Reader
	Output    io.Writer
	Log       *slog.Logger
	// Explain turns an error of the client into one for people.
	Explain func(error) error
	// Title returns the title of a conversation that begins with a text.
	Title func(text string) string
	// Question returns the text of a request that an agent asks.
	Question func(*event.Request) string
}

// host serves one editor. It is the agent of the protocol.
type host struct {
	Options
	conn *jsonrpc.Conn

	mu       sync.Mutex
	sessions map[string]*session // open ones, by id
	hasForms bool                // the editor can ask for a text
	// hasTitles is true if the editor knows of titles: those that name themselves do, and older ones report what they don't know as an error.
	hasTitles bool
}

// Run serves the editor until the input ends. Turns that run then continue.
func Run(ctx context.Context, o Options) error {
	a := &host{Options: o, sessions: map[string]*session{}}
	a.conn = jsonrpc.New(jsonrpc.Options{Output: o.Output, Handle: a.handle, CancelMethod: "$/cancel_request"})
	return a.conn.Serve(ctx, o.Input)
}

// handle returns the work of a method. What must have happened before the next message is handled, happens here: a cancel that follows a
// prompt must find it.
//
// Methods that aren't here, such as logout, are answered as unknown. They aren't in the capabilities either.
func (a *host) handle(method string, params json.RawMessage) jsonrpc.Work {
	var p sessionParams
	if method == "initialize" || method == "authenticate" {
		return a.greeting(method, params)
	}
	if err := jsonrpc.Decode(params, &p); err != nil {
		return func(context.Context) (any, error) { return nil, err }
	}
	switch method {
	case "session/new":
		return func(ctx context.Context) (any, error) { return a.create(ctx, &p) }
	case "session/load":
		return func(ctx context.Context) (any, error) { return a.open(ctx, &p, true) }
	case "session/resume":
		return func(ctx context.Context) (any, error) { return a.open(ctx, &p, false) }
	case "session/list":
		return func(ctx context.Context) (any, error) { return a.list(ctx, &p) }
	case "session/delete":
		return func(ctx context.Context) (any, error) { return a.delete(ctx, &p) }
	case "session/close":
		return a.closeSession(p.ID)
	case "session/set_mode":
		return func(context.Context) (any, error) { return a.choose(&p, p.Mode, true) }
	case "session/set_config_option":
		value, ok := p.Value.(string)
		if p.Option != optionID || !ok {
			return failing(jsonrpc.Errorf(jsonrpc.InvalidParams, "unknown option %q", p.Option))
		}
		return func(context.Context) (any, error) { return a.choose(&p, value, false) }
	case "session/prompt":
		s := a.session(p.ID)
		if s == nil {
			return failing(unknownSession(p.ID))
		}
		prompt := s.begin()
		return func(ctx context.Context) (any, error) { return s.prompt(ctx, prompt, p.Prompt) }
	case "session/cancel":
		if s := a.session(p.ID); s != nil {
			return s.cancel()
		}
	}
	return nil
}

// failing returns work that fails.
func failing(err error) jsonrpc.Work {
	return func(context.Context) (any, error) { return nil, err }
}

// unknownSession is the error for a session that isn't open.
func unknownSession(id string) error {
	return jsonrpc.Errorf(notFound, "session %s is not open; load it first", id)
}

// greeting answers the requests before the first session. It doesn't call the gateway, which may be started later.
func (a *host) greeting(method string, params json.RawMessage) jsonrpc.Work {
	if method == "authenticate" {
		// The token is a flag or a variable of this program, so the protocol has no part in it.
		return failing(jsonrpc.Errorf(jsonrpc.InvalidParams, "this agent has no authentication methods; set LEAT_API_TOKEN"))
	}
	var p struct {
		Info json.RawMessage `json:"clientInfo"`
		Can  struct {
			Elicitation *struct {
				Form json.RawMessage `json:"form"`
			} `json:"elicitation"`
		} `json:"clientCapabilities"`
	}
	if err := jsonrpc.Decode(params, &p); err != nil {
		return failing(err)
	}
	a.mu.Lock()
	a.hasTitles = len(p.Info) > 0 && string(p.Info) != "null"
	a.hasForms = p.Can.Elicitation != nil && len(p.Can.Elicitation.Form) > 0 && string(p.Can.Elicitation.Form) != "null"
	a.mu.Unlock()
	return func(context.Context) (any, error) {
		type empty struct{}
		return map[string]any{
			"protocolVersion": version,
			"agentInfo":       map[string]string{"name": "leat", "title": "Leat", "version": a.Version},
			"authMethods":     []empty{},
			"agentCapabilities": map[string]any{
				"loadSession":         true,
				"promptCapabilities":  map[string]bool{"image": true, "audio": true, "embeddedContext": true},
				"mcpCapabilities":     map[string]bool{"http": false, "sse": false},
				"sessionCapabilities": map[string]empty{"list": {}, "resume": {}, "close": {}, "delete": {}},
			},
		}, nil
	}
}

// fail turns an error of the client into an answer for the editor. nil stays nil.
//
// Editors show the message to the user, so it says what to do. Of the codes they only act on that of a refused token.
func (a *host) fail(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if failure, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return failure
	}
	code := jsonrpc.InternalError
	if e, ok := errors.AsType[*leat.Error](err); ok {
		switch e.Status {
		case http.StatusUnauthorized:
			code = authRequired
		case http.StatusNotFound:
			code = notFound
		case http.StatusBadRequest:
			code = jsonrpc.InvalidParams
		}
	}
	return jsonrpc.Errorf(code, "%v", a.Explain(err))
}

// isTemporary reports whether a request that failed may be sent again.
func isTemporary(err error) bool {
	if e, ok := errors.AsType[*leat.Error](err); ok {
		return e.Temporary()
	}
	return !errors.Is(err, leat.ErrProtocol) && !errors.Is(err, context.Canceled)
}

// session returns an open session, or nil.
func (a *host) session(id string) *session {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sessions[id]
}

// start opens a session: from now on it follows its conversation. An earlier one with the same id ends.
func (a *host) start(ctx context.Context, s *session) error {
	s.host = a
	s.ready, s.followDone, s.closing = make(chan struct{}), make(chan struct{}), make(chan struct{})
	s.prompts, s.withdrawals = map[*prompt]bool{}, map[string]context.CancelFunc{}
	s.ownMessages, s.abandoned = map[string]bool{}, map[string]bool{}
	s.writer = newWriter(s.notify, s.content, s.isOwn)
	a.mu.Lock()
	s.writer.hasTitles = a.hasTitles
	former := a.sessions[s.id]
	a.sessions[s.id] = s
	a.mu.Unlock()
	if former != nil {
		former.close()
		<-former.followDone // its updates would mix with those of the new one
	}
	// The session ends with the connection, and not with the request that opens it.
	a.conn.Go(s.follow)
	select {
	case <-s.ready:
		return nil
	case <-s.followDone:
		return a.fail(s.failure())
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// create opens a session with a new conversation. It is created at once and not with the first prompt, because the editor stores the id of the
// session, and may load it from another window before that.
func (a *host) create(ctx context.Context, p *sessionParams) (any, error) {
	if len(p.Tools) > 0 {
		a.Log.Warn("the agents of a gateway can't use the MCP servers of the editor", "servers", len(p.Tools))
	}
	dir, err := json.Marshal(p.Dir)
	if err != nil {
		return nil, fmt.Errorf("working folder: %w", err)
	}
	c, err := a.Client.Create(ctx, leat.CreateOptions{Agent: a.AgentName, Metadata: map[string]json.RawMessage{metaDir: dir}})
	if err != nil {
		return nil, a.fail(err)
	}
	return a.startSession(ctx, &session{id: c.ID, isUntitled: true, replaysAll: true}, c.Agent, c.ID)
}

// open opens a session with an existing conversation, wherever it was begun. The editor gets the whole history, or only what runs.
func (a *host) open(ctx context.Context, p *sessionParams, hasHistory bool) (any, error) {
	c, err := a.Client.Conversation(ctx, p.ID)
	if err != nil {
		return nil, a.fail(err)
	}
	return a.startSession(ctx, &session{id: c.ID, isUntitled: c.Title == "", replaysAll: hasHistory}, c.Agent, "")
}

// startSession starts a session, and returns the result of the request. It lists the agents that the session can choose from.
func (a *host) startSession(ctx context.Context, s *session, agentName, id string) (any, error) {
	list, err := a.Client.Agents(ctx)
	if err != nil {
		return nil, a.fail(err)
	}
	s.agents, s.current = list, agentName
	for _, candidate := range list {
		if candidate.Default && s.current == "" {
			s.current = candidate.Name
		}
	}
	if err := a.start(ctx, s); err != nil {
		return nil, err
	}
	return sessionResult{ID: id, Modes: s.modes(), Options: s.options()}, nil
}

// delete deletes a conversation for good, for all devices. Only its owner may do that.
func (a *host) delete(ctx context.Context, p *sessionParams) (any, error) {
	if err := a.Client.Delete(ctx, p.ID); err != nil {
		return nil, a.fail(err)
	}
	if s := a.take(p.ID); s != nil {
		s.close()
	}
	return nil, nil
}
