package compat

import (
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/models"
)

// model is an agent in the list of models. It has the keys of both APIs, and each client reads its own.
type model struct {
	ID          string    `json:"id"`
	Object      string    `json:"object"`
	Created     int64     `json:"created"`
	OwnedBy     string    `json:"owned_by"`
	Type        string    `json:"type"`
	DisplayName string    `json:"display_name"`
	CreatedAt   time.Time `json:"created_at"`
}

// epoch is the creation time of every agent, because the gateway does not know the real one.
var epoch = time.Unix(0, 0).UTC()

// modelOf returns an agent as a model.
func modelOf(name string) model {
	return model{ID: name, Object: "model", Created: epoch.Unix(), OwnedBy: "leat", Type: "model", DisplayName: name, CreatedAt: epoch}
}

// models answers GET /v1/models with all agents on one page.
func (s *surface) models(w http.ResponseWriter, _ *http.Request, p gateway.Principal) error {
	list := struct {
		Object  string  `json:"object"`
		Data    []model `json:"data"`
		HasMore bool    `json:"has_more"`
		FirstID *string `json:"first_id"`
		LastID  *string `json:"last_id"`
	}{Object: "list", Data: []model{}}
	for _, a := range s.gw.Catalog().Agents(p) {
		list.Data = append(list.Data, modelOf(a.Name))
	}
	if n := len(list.Data); n > 0 {
		list.FirstID, list.LastID = &list.Data[0].ID, &list.Data[n-1].ID
	}
	return server.Respond(w, list, nil)
}

// model answers GET /v1/models/{model}.
//
// Clients call it to check a configured name before their first request.
func (s *surface) model(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	name := r.PathValue("model")
	if !models.IsAgent(s.gw, p, name) {
		return models.Unknown(name)
	}
	return server.Respond(w, modelOf(name), nil)
}
