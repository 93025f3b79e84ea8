// Assistants: the agents.

package langgraph

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// assistantInfo describes an agent as an assistant. Its id and its graph are the name of the agent.
type assistantInfo struct {
	ID          string   `json:"assistant_id"`
	Graph       string   `json:"graph_id"`
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Config      struct{} `json:"config"`
	Context     struct{} `json:"context"`
	Metadata    struct{} `json:"metadata"`
	Version     int      `json:"version"`
	Created     string   `json:"created_at"`
	Updated     string   `json:"updated_at"`
}

// defaultAssistant is what the examples of LangGraph call their graph. It means the conversation's agent, or the default one.
const defaultAssistant = "agent"

// assistants lists the agents that the caller may use. They have no time of creation, but clients parse one.
func (s *surface) assistants(p gateway.Principal) []assistantInfo {
	list := []assistantInfo{}
	for _, a := range s.gw.Catalog().Agents(p) {
		list = append(list, assistantInfo{
			ID: a.Name, Graph: a.Name, Name: a.Name, Description: a.Description, Version: 1, Created: timeOf(0), Updated: timeOf(0),
		})
	}
	return list
}

// timeOf returns a time in epoch milliseconds as clients parse it.
func timeOf(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000000+00:00")
}

// assistantQuery is the body of a search. Other filters than these have nothing to compare with.
type assistantQuery struct {
	Graph    string         `json:"graph_id"`
	Name     string         `json:"name"`
	Metadata map[string]any `json:"metadata"`
	Limit    *int           `json:"limit"`
	Offset   int            `json:"offset"`
}

// find returns the assistants that a query means. Assistants have no metadata, so a query for some finds none.
func (q *assistantQuery) find(list []assistantInfo) []assistantInfo {
	matches := []assistantInfo{}
	for _, a := range list {
		if len(q.Metadata) == 0 && cmp.Or(q.Graph, a.Graph) == a.Graph && strings.Contains(strings.ToLower(a.Name), strings.ToLower(q.Name)) {
			matches = append(matches, a)
		}
	}
	return matches
}

func (s *surface) searchAssistants(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var q assistantQuery
	if err := server.Decode(r, &q); err != nil {
		return err
	}
	return server.Respond(w, pageOf(q.find(s.assistants(p)), q.Limit, q.Offset), nil)
}

func (s *surface) countAssistants(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var q assistantQuery
	if err := server.Decode(r, &q); err != nil {
		return err
	}
	return server.Respond(w, len(q.find(s.assistants(p))), nil)
}

func (s *surface) assistant(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	for _, a := range s.assistants(p) {
		if a.ID == r.PathValue("agent") {
			return server.Respond(w, a, nil)
		}
	}
	return notFound("there is no assistant %q", r.PathValue("agent"))
}

// agentOf returns the agent that a run names. It is empty for the agent of the conversation, or the default one.
func (s *surface) agentOf(p gateway.Principal, assistant string) (string, error) {
	for _, a := range s.gw.Catalog().Agents(p) {
		if a.Name == assistant {
			return assistant, nil
		}
	}
	if assistant == defaultAssistant {
		return "", nil
	}
	return "", server.Errorf(http.StatusNotFound, gateway.ReasonUnknownAgent, "there is no assistant %q; use the name of an agent", assistant)
}

// defaultLimit is how many things LangGraph lists if the client names no limit.
const defaultLimit = 10

// pageOf returns a page of a list.
func pageOf[T any](list []T, limit *int, offset int) []T {
	n := defaultLimit
	if limit != nil {
		n = max(*limit, 0)
	}
	list = list[min(max(offset, 0), len(list)):]
	return list[:min(n, len(list))]
}
