// Agent cards: what a client reads first.

package a2a

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// agentCard describes an agent. It has the fields of both versions: 1.0 reads Interfaces, and 0.3 reads URL, Transport and Protocol.
type agentCard struct {
	Name         string       `json:"name"`
	Description  string       `json:"description"`
	Version      string       `json:"version"`
	Interfaces   []endpoint   `json:"supportedInterfaces"`
	URL          string       `json:"url"`
	Transport    string       `json:"preferredTransport"`
	Protocol     string       `json:"protocolVersion"`
	Capabilities capabilities `json:"capabilities"`
	Input        []string     `json:"defaultInputModes"`
	Output       []string     `json:"defaultOutputModes"`
	Skills       []skill      `json:"skills"`
}

// endpoint is an address with the protocol that it speaks.
type endpoint struct {
	URL      string `json:"url"`
	Binding  string `json:"protocolBinding"`
	Protocol string `json:"protocolVersion"`
}

// capabilities says which optional parts of the protocol are offered.
type capabilities struct {
	HasStreaming bool `json:"streaming"`
	HasPush      bool `json:"pushNotifications"`
	HasExtended  bool `json:"extendedAgentCard"`
}

// skill is what an agent can do. Leat's agents have one each, since what they can do isn't known in more detail.
type skill struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
	Examples    []string `json:"examples,omitempty"`
}

// jsonRPC is the name of the binding.
const jsonRPC = "JSONRPC"

// card returns the card of an agent. Cards of agents that a caller may not use look as if they didn't exist.
func (s *surface) card(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	name := r.PathValue("agent")
	for _, a := range s.gw.Catalog().Agents(p) {
		if a.Name != name && (name != "" || !a.Default) {
			continue
		}
		address := s.address(r, a.Name)
		about := cmp.Or(a.Description, a.Name+", an agent behind Leat")
		return server.Respond(w, agentCard{
			Name: a.Name, Description: about, Version: "1", URL: address, Transport: jsonRPC, Protocol: "0.3.0",
			Interfaces:   []endpoint{{address, jsonRPC, "1.0"}, {address, jsonRPC, "0.3"}},
			Capabilities: capabilities{HasStreaming: true},
			Input:        []string{"text/plain", "image/*", "audio/*", "application/octet-stream"}, Output: []string{"text/plain", "text/markdown"},
			Skills: []skill{{ID: "chat", Name: a.Name, Description: about, Tags: []string{"chat"}, Examples: a.Suggestions}},
		}, nil)
	}
	return server.Errorf(http.StatusNotFound, gateway.ReasonUnknownAgent, "unknown agent %q", name)
}

// address returns the absolute address of an agent. Clients resolve nothing in a card.
func (s *surface) address(r *http.Request, agent string) string {
	address := s.srv.URL(r, "/a2a/"+url.PathEscape(agent))
	if strings.Contains(address, "://") {
		return address
	}
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	return scheme + r.Host + address
}
