// Agents, and the models that clients want to know of.

package letta

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/chats"
)

// agentState is an agent of Letta. Fields that Leat doesn't have are empty, because clients read them without a check.
type agentState struct {
	ID          string      `json:"id"`
	Name        string      `json:"name"`
	Description string      `json:"description"`
	Type        string      `json:"agent_type"`
	Model       string      `json:"model"`
	LLM         llmConfig   `json:"llm_config"`
	System      string      `json:"system"`
	Tags        []string    `json:"tags"`
	Tools       []object    `json:"tools"`
	Sources     []object    `json:"sources"`
	Blocks      []object    `json:"blocks"`
	Memory      agentMemory `json:"memory"`
	Compaction  compaction  `json:"compaction_settings"`
}

// compaction says which model shortens the context. Leat's agents do that themselves; Letta Code sets the model of an agent that has none, and doesn't
// start if it can't.
type compaction struct {
	Model string `json:"model"`
}

// agentMemory is the memory of an agent. That of Leat's agents is their own.
type agentMemory struct {
	Blocks []object `json:"blocks"`
}

// llmConfig describes the model of an agent.
type llmConfig struct {
	Handle   string `json:"handle"`
	Model    string `json:"model"`
	Endpoint string `json:"model_endpoint_type"`
	Context  int    `json:"context_window"`
	Provider string `json:"provider_type"`
	Name     string `json:"name"`
}

// contextWindow is that of each agent in the list of models. Clients divide by it, and Leat doesn't know the real one.
const contextWindow = 200_000

// modelOf returns the description of an agent's model: the agent itself. Clients list models to offer a choice, and compare the handle with that of the
// agent.
func modelOf(name string) llmConfig {
	return llmConfig{Handle: "leat/" + name, Model: name, Endpoint: "openai", Context: contextWindow, Provider: "leat", Name: name}
}

// stateOf returns an agent.
func stateOf(a *gateway.AgentInfo) agentState {
	return agentState{
		ID: agentPrefix + a.Name, Name: a.Name, Description: a.Description, Type: "letta_v1_agent", Model: "leat/" + a.Name, LLM: modelOf(a.Name),
		Tags: []string{}, Tools: []object{}, Sources: []object{}, Blocks: []object{}, Memory: agentMemory{[]object{}},
		Compaction: compaction{"leat/" + a.Name},
	}
}

// page is what a client wants of a list. After and before are ids of elements that the client has.
type page struct {
	after, before string
	limit         int
	isAscending   bool
}

// maxPage is the largest number of elements in a page.
const maxPage = 1000

// pageOf reads the parameters of a list.
func pageOf(r *http.Request, standardOrder string) (p page, err error) {
	q := r.URL.Query()
	p = page{after: q.Get("after"), before: q.Get("before"), limit: 100, isAscending: cmp.Or(q.Get("order"), standardOrder) == "asc"}
	if v := q.Get("limit"); v != "" {
		if p.limit, err = strconv.Atoi(v); err != nil || p.limit < 1 {
			return p, server.Invalid("limit must be a positive number")
		}
	}
	p.limit = min(p.limit, maxPage)
	return p, nil
}

// elements returns the elements of a page. The list is in the order of the page. An id that isn't in the list is the end of it: an element may have been
// removed since, and a client that got the whole list again would never end.
func elements[T any](list []T, p page, id func(*T) string) []T {
	begin, end := 0, len(list)
	for i := range list {
		switch id(&list[i]) {
		case p.after:
			begin = i + 1
		case p.before:
			end = i
		}
	}
	if p.after != "" && begin == 0 {
		return []T{}
	}
	if begin >= end {
		return []T{}
	}
	return list[begin:min(end, begin+p.limit)]
}

// agents answers GET /v1/agents/.
func (s *surface) agents(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	pg, err := pageOf(r, "desc")
	if err != nil {
		return err
	}
	list := []agentState{}
	name := r.URL.Query().Get("name")
	for _, a := range s.gw.Catalog().Agents(p) {
		if name == "" || a.Name == name {
			list = append(list, stateOf(&a))
		}
	}
	return server.Respond(w, elements(list, pg, func(a *agentState) string { return a.ID }), nil)
}

// agent answers GET /v1/agents/{agent}.
func (s *surface) agent(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	a, err := s.find(p, r.PathValue("agent"))
	if err != nil {
		return err
	}
	return server.Respond(w, stateOf(a), nil)
}

// updateAgent answers PATCH /v1/agents/{agent}. Agents are configured in the gateway, so nothing can be changed. Letta Code chooses the model of an agent at
// each start, and ends if it can't: the choice of the model that the agent has is accepted, and the response has the settings that are in effect.
func (s *surface) updateAgent(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	a, err := s.find(p, r.PathValue("agent"))
	if err != nil {
		return err
	}
	var body map[string]json.RawMessage
	if err := server.Decode(r, &body); err != nil {
		return err
	}
	state := stateOf(a)
	for field, value := range body {
		switch {
		case field == "model_settings", field == "context_window_limit": // of that model
		case field != "model" || chats.TextOf(value) != state.Model:
			return server.Invalid("%s of an agent can't be changed here", field)
		}
	}
	return server.Respond(w, state, nil)
}

// find returns an agent by the id of a client.
func (s *surface) find(p gateway.Principal, id string) (*gateway.AgentInfo, error) {
	name := withoutPrefix(id, agentPrefix)
	for _, a := range s.gw.Catalog().Agents(p) {
		if a.Name == name {
			return &a, nil
		}
	}
	return nil, server.Errorf(http.StatusNotFound, server.ReasonNotFound, "there is no agent %q", id)
}

// models answers GET /v1/models/.
func (s *surface) models(w http.ResponseWriter, _ *http.Request, p gateway.Principal) error {
	list := []llmConfig{}
	for _, a := range s.gw.Catalog().Agents(p) {
		list = append(list, modelOf(a.Name))
	}
	return server.Respond(w, list, nil)
}
