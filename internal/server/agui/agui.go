// The routes.

package agui

import (
	"cmp"
	"encoding/json"
	"net/http"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/chats"
)

// source marks messages that came from AG-UI.
const source = "agui"

// surface has the handlers. All fields are set before the first request.
type surface struct {
	srv     *server.Server
	gw      *gateway.Gateway
	chats   chats.Chats
	viewers *server.ViewerMetrics
}

// Register adds the routes to a server. The paths below /agui are those of CopilotKit's runtime.
func Register(srv *server.Server, gw *gateway.Gateway) {
	s := &surface{srv: srv, gw: gw, chats: chats.Chats{Gateway: gw}, viewers: srv.Metrics().Viewers(source)}
	srv.HandleAll(server.Authenticated, []server.Route{
		{Method: http.MethodGet, Pattern: "/agui/info", Handler: s.info, Errors: chats.RespondError},
		{Method: http.MethodPost, Pattern: "/agui", Handler: s.single, MaxBody: maxBody, Stream: true, Errors: chats.RespondError},
		{Method: http.MethodPost, Pattern: "/agui/agent/{agent}/run", Handler: s.runRoute, MaxBody: maxBody, Stream: true, Errors: chats.RespondError},
		{Method: http.MethodPost, Pattern: "/agui/agent/{agent}/connect", Handler: s.connectRoute, MaxBody: maxBody, Stream: true, Errors: chats.RespondError},
		{Method: http.MethodPost, Pattern: "/agui/agent/{agent}/stop/{thread}", Handler: s.stopRoute, Errors: chats.RespondError},
	})
}

// runtimeInfo is what CopilotKit asks its runtime for first.
type runtimeInfo struct {
	Version    string               `json:"version"`
	Agents     map[string]agentInfo `json:"agents"`
	Transcribe bool                 `json:"audioFileTranscriptionEnabled"`
}

// agentInfo describes an agent to CopilotKit.
type agentInfo struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	ClassName   string `json:"className"`
}

// copilotVersion is the version of CopilotKit whose runtime this is.
const copilotVersion = "1.75.0"

// defaultName is what CopilotKit calls the agent of a page that names none.
const defaultName = "default"

// info lists the agents. The default agent has two names.
func (s *surface) info(w http.ResponseWriter, _ *http.Request, p gateway.Principal) error {
	list := map[string]agentInfo{}
	for _, a := range s.gw.Catalog().Agents(p) {
		about := agentInfo{Name: a.Name, Description: cmp.Or(a.Description, a.Name), ClassName: "LeatAgent"}
		list[a.Name] = about
		if _, isTaken := list[defaultName]; a.Default && !isTaken {
			list[defaultName] = about
		}
	}
	return server.Respond(w, runtimeInfo{Version: copilotVersion, Agents: list}, nil)
}

// envelope is a request to the single route. A request without a method is the input of a run.
type envelope struct {
	Method string `json:"method"`
	Params struct {
		Agent  string `json:"agentId"`
		Thread string `json:"threadId"`
	} `json:"params"`
	Body json.RawMessage `json:"body"`
}

// single answers POST /agui: a run of the default agent, or a request of CopilotKit if its page has only one route.
func (s *surface) single(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var body json.RawMessage
	if err := server.Decode(r, &body); err != nil {
		return err
	}
	var e envelope
	if err := server.Unmarshal(body, &e, false); err != nil {
		return err
	}
	switch e.Method {
	case "":
		return s.run(w, r, p, "", body)
	case "info":
		return s.info(w, r, p)
	case "agent/run":
		return s.run(w, r, p, e.Params.Agent, e.Body)
	case "agent/connect":
		return s.connect(w, r, p, e.Params.Agent, e.Body)
	case "agent/stop":
		return s.stop(w, r, p, e.Params.Thread)
	}
	return server.Errorf(http.StatusNotFound, server.ReasonNotFound, "this runtime has no method %q", e.Method)
}

func (s *surface) runRoute(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var body json.RawMessage
	if err := server.Decode(r, &body); err != nil {
		return err
	}
	return s.run(w, r, p, r.PathValue("agent"), body)
}

func (s *surface) connectRoute(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var body json.RawMessage
	if err := server.Decode(r, &body); err != nil {
		return err
	}
	return s.connect(w, r, p, r.PathValue("agent"), body)
}

func (s *surface) stopRoute(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	return s.stop(w, r, p, r.PathValue("thread"))
}

// stopResult is the response to a stop.
type stopResult struct {
	HasStopped bool `json:"stopped"`
}

// stop stops the unfinished turns of a thread. A page that has not sent anything yet may stop too.
func (s *surface) stop(w http.ResponseWriter, r *http.Request, p gateway.Principal, thread string) error {
	id, isFound, err := s.chats.Find(r.Context(), p, thread)
	if err != nil || !isFound {
		return server.Respond(w, stopResult{}, err)
	}
	turns, err := s.chats.Unfinished(r.Context(), p, id)
	if err == nil {
		err = s.chats.Stop(r.Context(), p, id)
	}
	return server.Respond(w, stopResult{len(turns) > 0}, err)
}

// agentOf returns the agent that a path names. It is empty for the agent of the conversation, or the default one.
func (s *surface) agentOf(p gateway.Principal, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	for _, a := range s.gw.Catalog().Agents(p) {
		if a.Name == name {
			return name, nil
		}
	}
	if name == defaultName {
		return "", nil
	}
	return "", server.Errorf(http.StatusNotFound, gateway.ReasonUnknownAgent, "there is no agent %q", name)
}
