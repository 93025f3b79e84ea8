package eliza

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/internal/call"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/event"
)

// defaultTitle is the template of the titles of new counterparts.
const defaultTitle = "Leat {conversation}"

// Config describes the server.
type Config struct {
	URL     string // base address, without /api
	Token   string // sent as a bearer token; may be empty
	Title   string // template of the titles of counterparts, see [agent.Expand]; if empty, defaultTitle
	Dialect dialect.Dialect
}

// Agent sends turns to an Eliza server. All methods are safe for concurrent use.
type Agent struct {
	cfg    Config
	base   *url.URL
	client *http.Client
	socket *socket

	mu    sync.Mutex
	rooms map[string]string // conversations of this gateway, by the server's room id
}

var (
	_ agent.Agent     = (*Agent)(nil)
	_ agent.Checker   = (*Agent)(nil)
	_ agent.Stopper   = (*Agent)(nil)
	_ agent.Keeper    = (*Agent)(nil)
	_ agent.Signaller = (*Agent)(nil)
)

// New checks the configuration. It doesn't connect.
func New(c Config) (*Agent, error) {
	c.Title = cmp.Or(c.Title, defaultTitle)
	if _, err := agent.Expand(c.Title, agent.Input{}); err != nil {
		return nil, fmt.Errorf("title: %w", err)
	}
	base, err := call.Address("the target", c.URL)
	if err != nil {
		return nil, err
	}
	a := &Agent{cfg: c, base: base, client: call.Client(), rooms: map[string]string{}}
	a.socket = newSocket(a.base.JoinPath("ws"), c.Token, a.conversationOf)
	return a, nil
}

// session is the JSON that is stored with the conversation: the ids of its counterpart.
type session struct {
	Conversation string `json:"conversation"`
	Room         string `json:"room,omitempty"`
}

// maxRooms limits the map from rooms to conversations. If it is full, it is cleared; signals of rooms that aren't in it have no
// conversation, so only operators receive them.
const maxRooms = 10_000

// remember records the conversation of a room, for signals. Rooms are recorded when a turn uses them, so after
// a restart a room is unknown until the conversation's next turn.
func (a *Agent) remember(s session, conversation string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.rooms) >= maxRooms {
		clear(a.rooms)
	}
	a.rooms[s.Room] = conversation
}

// conversationOf returns the conversation of a room, or "" if it isn't known.
func (a *Agent) conversationOf(room string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.rooms[room]
}

// request is the body of a chat message.
type request struct {
	Text     string  `json:"text"`
	Channel  string  `json:"channelType"`     // "DM", which makes the agent answer every message
	ID       string  `json:"clientMessageId"` // the idempotency key of the message
	Protocol string  `json:"streamProtocol"`  // "delta-v2": tokens are deltas rather than snapshots
	Images   []image `json:"images,omitempty"`
}

// image is an attached image. The chat has no other attachments.
type image struct {
	Data string `json:"data"` // base64
	MIME string `json:"mimeType"`
	Name string `json:"name"`
}

// Run implements [agent.Agent]. A stored counterpart may have been deleted on the server; then, and only then,
// the message is sent once more, to a new counterpart. The server recognizes a repeated request by the turn's
// key, so a message that is retried after a lost connection is answered once.
func (a *Agent) Run(ctx context.Context, in agent.Input, emitter *agent.Emitter) error {
	in, err := emitter.Inline(ctx, in)
	if err != nil {
		return err
	}
	var s session
	if len(in.Session) > 0 {
		if err := json.Unmarshal(in.Session, &s); err != nil {
			return fmt.Errorf("session: %w", err)
		}
	}
	body := request{Channel: "DM", ID: in.Key, Protocol: "delta-v2"}
	body.Text, body.Images = content(in.Message)
	// Only a stored counterpart can have been deleted meanwhile. For one that this turn created, a 404 is an ordinary failure, so the
	// loop ends after two rounds at most.
	isStored := s.Conversation != ""
	for {
		if s.Conversation == "" {
			if s, err = a.create(ctx, in, emitter); err != nil {
				return err
			}
		}
		a.remember(s, in.Conversation)
		history := &callbackHistory{agent: a, emitter: emitter, conversation: s.Conversation, text: body.Text}
		talk := call.Talk{
			Complete: history.complete,
			Client:   a.client, Dialect: a.cfg.Dialect, Emitter: emitter,
			Request: func(ctx context.Context, _ []event.Answer) (*http.Request, error) {
				return call.Stream(ctx, call.Path(a.base, "api", "conversations", s.Conversation, "messages", "stream"), a.cfg.Token, in.Key, body)
			},
			ReportGone: isStored,
		}
		err := talk.Run(ctx)
		if !errors.Is(err, call.ErrGone) {
			return err
		}
		s, isStored = session{}, false
	}
}

// create creates the conversation's counterpart on the server and stores its ids. The request is repeated like
// any other, so a lost response may leave an unused counterpart on the server. If the gateway stores no
// sessions, the counterpart serves this turn only.
func (a *Agent) create(ctx context.Context, in agent.Input, emitter *agent.Emitter) (session, error) {
	title, err := agent.Expand(a.cfg.Title, in)
	if err != nil {
		return session{}, err
	}
	var created struct {
		Conversation struct {
			ID   string `json:"id"`
			Room string `json:"roomId"`
		} `json:"conversation"`
	}
	err = call.Repeat(ctx, emitter, func() error {
		return call.DoJSON(ctx, a.client, http.MethodPost, a.base.JoinPath("api/conversations"), a.cfg.Token, map[string]string{"title": title}, &created)
	})
	if err != nil {
		return session{}, err
	}
	s := session{Conversation: created.Conversation.ID, Room: created.Conversation.Room}
	if s.Conversation == "" {
		return s, &agent.Error{Code: call.CodeAnswer, Message: "the server created a conversation without an id"}
	}
	return s, call.StoreSession(ctx, emitter, s)
}

// content returns the text and the images of a chat message. The chat accepts only images, and only with their
// content in base64, so other files are mentioned in the text.
func content(m agent.Message) (text string, images []image) {
	text = m.Text
	for _, p := range m.Parts {
		if p.Media == nil {
			continue
		}
		head, data, inline := strings.Cut(p.Media.URL, ";base64,")
		if inline && strings.HasPrefix(head, "data:") && strings.HasPrefix(p.Media.MIME, "image/") {
			images = append(images, image{Data: data, MIME: p.Media.MIME, Name: p.Media.Name})
		} else {
			text = strings.TrimLeft(text+"\n\n"+call.UnreachableText(p.Media), "\n")
		}
	}
	return text, images
}

// Stop implements [agent.Stopper]. Servers before July 2026 don't have this endpoint and answer 404; they stop when the request
// of the turn is cancelled.
func (a *Agent) Stop(ctx context.Context, in agent.Input) error {
	var s session
	if len(in.Session) == 0 || json.Unmarshal(in.Session, &s) != nil || s.Room == "" {
		return nil
	}
	err := call.DoJSON(ctx, a.client, http.MethodPost, call.Path(a.base, "api", "turns", s.Room, "abort"), a.cfg.Token, nil, nil)
	if failed, ok := errors.AsType[*call.Failure](err); ok && failed.Status == http.StatusNotFound {
		return nil
	}
	return err
}

// Check implements [agent.Checker]. It succeeds if the server accepts the token and reports that its agent is
// running. A server that reports no state is accepted.
func (a *Agent) Check(ctx context.Context) error {
	var status struct {
		State string `json:"state"`
	}
	if err := call.DoJSON(ctx, a.client, http.MethodGet, a.base.JoinPath("api/status"), a.cfg.Token, nil, &status); err != nil {
		return err
	}
	if status.State != "" && status.State != "running" {
		return fmt.Errorf("the server's agent is %q", status.State)
	}
	return nil
}

// Kind returns the agent kind "eliza". Its agents decode their streams with the dialect "eliza-chat" of dialects.
func Kind(dialects dialect.Registry) agent.Kind {
	return agent.Kind{
		Name:    "eliza",
		Summary: "an agent on an Eliza server, with the events of its socket as signals",
		Target:  "URL",
		Options: append([]agent.Option{
			{Name: "title", Help: "title of the conversations on the server, with {tenant}, {subject}, {conversation}", Default: defaultTitle},
		}, agent.SecretOptions("token", "token of the server", "")...),
		New: func(s agent.Spec) (agent.Agent, error) {
			d, err := dialects.Lookup("eliza-chat")
			if err != nil {
				return nil, err
			}
			token, err := s.Secret("token")
			if err != nil {
				return nil, err
			}
			return New(Config{URL: s.Target, Token: token, Title: s.Options["title"], Dialect: d})
		},
	}
}
