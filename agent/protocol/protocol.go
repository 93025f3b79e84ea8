package protocol

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/internal/call"
	"github.com/leat-dev/leat/dialect"
)

// errNoRun is returned by Probe if the upstream hasn't sent the id of its run yet, so that Probe can't ask for its state.
var errNoRun = errors.New("the upstream hasn't sent the id of its run")

// server has the common parts of the agents of this package: the address, the token, the dialect and the
// client. Each agent embeds it.
type server struct {
	url     *url.URL
	token   string
	dialect dialect.Dialect
	client  *http.Client
}

// newServer returns the common parts for a spec. It resolves the token but doesn't connect.
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

// Close closes idle connections. Running turns continue.
func (s *server) Close() { s.client.CloseIdleConnections() }

// talk returns a [call.Talk] for one turn. The agent sets its functions and calls Run.
func (s *server) talk(emitter *agent.Emitter) *call.Talk {
	return &call.Talk{Client: s.client, Dialect: s.dialect, Emitter: emitter}
}

// Check implements [agent.Checker]. The protocols have no request that only checks, so it sends GET and accepts
// any response except 401 and 403, which mean that the token is wrong. In particular it accepts 405, since the
// routes of runs allow only POST.
func (s *server) Check(ctx context.Context) error {
	err := call.DoJSON(ctx, s.client, http.MethodGet, s.url, s.token, nil, nil)
	if failed, ok := errors.AsType[*call.Failure](err); ok && failed.Status != 0 {
		if failed.Status == http.StatusUnauthorized || failed.Status == http.StatusForbidden {
			return errors.New("the server rejected the token: " + failed.Error())
		}
		return nil
	}
	return err
}

// storeSession stores a session at the end of a turn. A failure is only logged: the next turn then starts a new session, which loses the
// server's memory of the conversation, but not the answer.
func storeSession(ctx context.Context, emitter *agent.Emitter, session any) {
	b, err := json.Marshal(session)
	if err == nil {
		err = emitter.KeepSession(ctx, b)
	}
	if err != nil && !errors.Is(err, agent.ErrTurnOver) {
		emitter.Log().Warn("the agent's session of the conversation can't be stored", "error", err)
	}
}

// Kinds returns the kinds of this package. The registry must have their dialects. All of them have the options
// of a token; the other options of a kind are listed with it.
func Kinds(dialects dialect.Registry) agent.Kinds {
	kind := func(name, summary, dialectName string, build func(agent.Spec, server) (agent.Agent, error), extra ...agent.Option) agent.Kind {
		return agent.Kind{
			Name: name, Summary: summary, Target: "URL", Options: append(extra, agent.SecretOptions("token", "token of the server", "")...),
			New: func(s agent.Spec) (agent.Agent, error) {
				server, err := newServer(s, dialects, dialectName)
				if err != nil {
					return nil, err
				}
				return build(s, server)
			},
		}
	}
	return agent.Kinds{
		kind("agui", "an agent behind a URL that speaks AG-UI", "ag-ui",
			func(_ agent.Spec, s server) (agent.Agent, error) { return &agui{s}, nil }),
		kind("a2a", "an agent behind a URL that speaks A2A, JSON-RPC", "a2a", newA2A,
			agent.Option{Name: "version", Help: "of the protocol, 1.0 or 0.3", Default: "1.0"}),
		kind("langgraph", "a graph on a LangGraph server", "langgraph",
			func(spec agent.Spec, s server) (agent.Agent, error) {
				return &langgraph{server: s, assistant: cmp.Or(spec.Options["assistant"], defaultAssistant)}, nil
			},
			agent.Option{Name: "assistant", Help: "id of the assistant, or name of the graph", Default: defaultAssistant}),
		kind("aisdk", "a chat route of the AI SDK (Vercel), such as /api/chat", "aisdk",
			func(_ agent.Spec, s server) (agent.Agent, error) { return &aisdk{s}, nil }),
	}
}

// conversation returns the whole conversation, oldest message first, for the protocols whose servers store no history.
func conversation(in agent.Input) []agent.Message {
	return append(slices.Clip(in.History), in.Message)
}

// files returns the media of a message that a server can read by URL, and the text. The text names the others,
// so that the agent can tell the user: files that are too large for a data URL, and files of earlier messages,
// which are not inlined.
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

// file is an attachment that a server can read: URL is a data URL, or an address on the web.
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
