package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/internal/call"
	"github.com/leat-dev/leat/dialect"
)

// errNoRun is returned by Probe if the upstream hasn't sent the id of its run yet, so there is nothing to ask about.
var errNoRun = errors.New("the upstream hasn't sent the id of its run")

// server has the common parts of the agents of this package: the address, the token, the dialect and the client.
type server struct {
	url     *url.URL
	token   string
	dialect dialect.Dialect
	client  *http.Client
}

func newServer(s agent.Spec, dialects dialect.Registry, name string) (server, error) {
	d, err := dialects.Lookup(name)
	if err != nil {
		return server{}, err
	}
	token, err := s.Secret("token")
	if err != nil {
		return server{}, err
	}
	u, err := call.Address("the target", s.Target)
	return server{url: u, token: token, dialect: d, client: call.Client()}, err
}

// Close closes idle connections.
func (s *server) Close() { s.client.CloseIdleConnections() }

func (s *server) talk(emitter *agent.Emitter) *call.Talk {
	return &call.Talk{Client: s.client, Dialect: s.dialect, Emitter: emitter}
}

// Check implements [agent.Checker]. The protocols have no request that only checks, so it sends GET and accepts any response except 401
// and 403, which mean that the token is wrong.
func (s *server) Check(ctx context.Context) error {
	req, err := call.JSON(ctx, http.MethodGet, s.url, s.token, nil)
	if err != nil {
		return err
	}
	var failed *call.Failure
	if err := call.Do(s.client, req, nil); errors.As(err, &failed) && failed.Status != 0 {
		if failed.Status == http.StatusUnauthorized || failed.Status == http.StatusForbidden {
			return errors.New("the server rejected the token: " + failed.Error())
		}
		return nil
	} else if err != nil {
		return err
	}
	return nil
}

// storeSession stores a session at the end of a turn and returns end, the result of the turn. A failure to store it is only logged: the next
// turn starts a new session, and the answer is more important.
func storeSession(ctx context.Context, emitter *agent.Emitter, session any, end error) error {
	b, err := json.Marshal(session)
	if err == nil {
		err = emitter.KeepSession(ctx, b)
	}
	if err != nil && !errors.Is(err, agent.ErrTurnOver) {
		emitter.Log().Warn("the agent's session of the conversation can't be stored", "error", err)
	}
	return end
}

// options returns the options of a kind: extra, and those of the token.
func options(extra ...agent.Option) []agent.Option {
	return append(extra, agent.SecretOptions("token", "token of the server", "")...)
}

// Kinds returns the kinds of this package. The registry must have their dialects.
func Kinds(dialects dialect.Registry) agent.Kinds {
	return agent.Kinds{aguiKind(dialects), a2aKind(dialects), langgraphKind(dialects), aisdkKind(dialects)}
}

// files returns the media of a message that a server can read by URL, and the text. The text names the others: files that are too large for
// a data URL, and files of earlier messages, which are not inlined.
func files(m agent.Message) (text string, attachments []file) {
	text = m.Text
	for _, p := range m.Parts {
		switch {
		case p.Media == nil:
		case call.Reachable(p.Media.URL):
			attachments = append(attachments, file{URL: p.Media.URL, MIME: p.Media.MIME, Name: p.Media.Name})
		default:
			text = strings.TrimLeft(text+"\n\n"+call.UnreachableText(p.Media), "\n")
		}
	}
	return text, attachments
}

type file struct{ URL, MIME, Name string }

// data returns the base64 content of a data URL, and false for another URL.
func (f file) data() (string, bool) {
	head, data, ok := strings.Cut(f.URL, ";base64,")
	return data, ok && strings.HasPrefix(head, "data:")
}

// family returns image, audio, video or document, the types that the protocols distinguish.
func (f file) family() string {
	switch kind, _, _ := strings.Cut(f.MIME, "/"); kind {
	case "image", "audio", "video":
		return kind
	}
	return "document"
}
