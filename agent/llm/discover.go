// Finding the models that a provider offers, each as an agent.

package llm

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/leat-dev/leat/agent"
)

// discover lists the models of a provider, each with the spec of its agent. If s has a target, it is the
// address of the API. The specs have the options of s, so that an agent made from an offer calls the same
// address; [agent.Kinds.Discover] removes a key in clear text.
func (p provider) discover(ctx context.Context, s agent.Spec) ([]agent.Offer, error) {
	if s.Target != "" {
		s = s.WithOption("base_url", s.Target)
	}
	key, from, err := keyOf(s)
	if err != nil {
		return nil, err
	}
	a, err := newAgent(*p.api, config{BaseURL: s.Options["base_url"], Key: key, KeyFrom: from})
	if err != nil {
		return nil, err
	}
	defer a.Close()
	models, err := a.models(ctx)
	if err != nil {
		return nil, err
	}
	offers := make([]agent.Offer, len(models))
	for i, id := range models {
		offers[i] = agent.Offer{Type: agent.OfferModel, ID: id, Spec: agent.Spec{Name: s.Kind, Kind: s.Kind, Target: id, Options: s.Options}.String()}
	}
	return offers, nil
}

// models requests the list of models. All APIs use one of two keys for the list, and each model has an id or a name.
func (a *modelAgent) models(ctx context.Context) ([]string, error) {
	if err := a.checkKey(); err != nil {
		return nil, err
	}
	type model struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	}
	var list struct {
		Data   []model `json:"data"`   // Anthropic, OpenAI and compatible servers
		Models []model `json:"models"` // Gemini and Ollama
	}
	mismatch := a.name + " responded with something other than a list of models; check the address"
	if err := a.fetch(ctx, http.MethodGet, a.api.list, nil, &list, mismatch); err != nil {
		return nil, err
	}
	if list.Data == nil && list.Models == nil {
		return nil, errors.New(mismatch)
	}
	// Gemini prefixes its names with "models/", which its specs leave out.
	var ids []string
	for _, m := range append(list.Data, list.Models...) {
		if id := cmp.Or(m.ID, strings.TrimPrefix(m.Name, "models/")); id != "" && len(ids) < agent.MaxOffers {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
