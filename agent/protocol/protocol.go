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

// errNoRun says that the upstream has not named what runs there, so that it can't be asked about it.
var errNoRun = errors.New("the upstream has named no run")

// server is what the agents of this package have in common: an address, a token, a dialect.
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

// Close closes the connections that are kept for further turns.
func (s *server) Close() { s.client.CloseIdleConnections() }

func (s *server) talk(emitter *agent.Emitter) *call.Talk {
	return &call.Talk{Client: s.client, Dialect: s.dialect, Emitter: emitter}
}

// Check implements [agent.Checker]: something answers HTTP there. It asks for nothing, so any answer but a refusal of the
// token will do.
func (s *server) Check(ctx context.Context) error {
	req, err := call.JSON(ctx, http.MethodGet, s.url, s.token, nil)
	if err != nil {
		return err
	}
	var failed *call.Failure
	if err := call.Do(s.client, req, nil); errors.As(err, &failed) && failed.Status != 0 {
		if failed.Status == http.StatusUnauthorized || failed.Status == http.StatusForbidden {
			return errors.New("the token is refused: " + failed.Error())
		}
		return nil
	} else if err != nil {
		return err
	}
	return nil
}

// keep keeps a session at the end of a turn. What ended the turn counts for more than that it could not be kept.
func storeSession(ctx context.Context, emitter *agent.Emitter, session any, end error) error {
	b, err := json.Marshal(session)
	if err == nil {
		err = emitter.KeepSession(ctx, b)
	}
	if err != nil && !errors.Is(err, agent.ErrTurnOver) {
		emitter.Log().Warn("what the agent calls the conversation is not kept", "error", err)
	}
	return end
}

// options are a kind's own and those that all have.
func options(extra ...agent.Option) []agent.Option {
	return append(extra, agent.SecretOptions("token", "token of the server", "")...)
}

// Kinds are the agents as kinds.
func Kinds(dialects dialect.Registry) agent.Kinds {
	return agent.Kinds{aguiKind(dialects), a2aKind(dialects), langgraphKind(dialects), aisdkKind(dialects)}
}

// files are the media of a message that a server can fetch or be sent, as URLs, beside its text, which names the others: what is
// too large to be sent along, and what was sent with an earlier message.
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

// data is the base64 of a data URL.
func (f file) data() (string, bool) {
	head, data, ok := strings.Cut(f.URL, ";base64,")
	return data, ok && strings.HasPrefix(head, "data:")
}

// family is what sort of file it is.
func (f file) family() string {
	switch kind, _, _ := strings.Cut(f.MIME, "/"); kind {
	case "image", "audio", "video":
		return kind
	}
	return "document"
}
