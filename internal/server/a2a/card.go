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
	security
}

// security says how clients authenticate. SchemeLists are requirements of 1.0, and Old those of 0.3. A gateway without a token needs none.
type security struct {
	Schemes     map[string]scheme `json:"securitySchemes,omitempty"`
	SchemeLists []requirement     `json:"securityRequirements,omitempty"`
	Old         []map[string]list `json:"security,omitempty"`
}

// scheme is a way to authenticate, with the fields of both versions: 0.3 reads Type and Name, and 1.0 reads HTTP.
type scheme struct {
	Type string     `json:"type"`
	Name string     `json:"scheme"`
	HTTP httpScheme `json:"httpAuthSecurityScheme"`
}

type httpScheme struct {
	Name string `json:"scheme"`
}

// requirement names schemes of which all are needed, each with the scopes that it needs: none here.
type requirement struct {
	Schemes map[string]scopes `json:"schemes"`
}

type scopes struct {
	List list `json:"list"`
}

type list []string

// bearer is the only scheme: the API token or a user's token in the header Authorization.
var bearer = security{
	Schemes:     map[string]scheme{"bearer": {Type: "http", Name: "bearer", HTTP: httpScheme{"bearer"}}},
	SchemeLists: []requirement{{map[string]scopes{"bearer": {list{}}}}},
	Old:         []map[string]list{{"bearer": {}}},
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
		var needed security
		if s.srv.TokenNeeded() {
			needed = bearer
		}
		return server.Respond(w, agentCard{
			security: needed,
			Name:     a.Name, Description: about, Version: "1", URL: address, Transport: jsonRPC, Protocol: "0.3.0",
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
