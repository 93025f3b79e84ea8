package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/leat-dev/leat/agent"
)

// maxReply limits a response that isn't a stream, in bytes. A response of the Responses API contains its whole output, and a list of
// models may have thousands of entries.
const maxReply = agent.MaxStream

// Check implements [agent.Checker]. It succeeds if the provider can be reached, accepts the key and knows the
// model. It costs no tokens.
//
// Most APIs have an endpoint for one model. OpenAI's is missing on many compatible servers, so there the model
// is searched in the list. An empty list is accepted, since some servers list no models but serve them.
func (a *modelAgent) Check(ctx context.Context) error {
	if err := a.checkKey(); err != nil {
		return err
	}
	method, path, content := a.api.model(&a.cfg)
	var body []byte
	if content != nil {
		var err error
		if body, err = json.Marshal(content); err != nil {
			return err
		}
	}
	if !a.api.isList {
		return a.fetch(ctx, method, path, body, nil, "")
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := a.fetch(ctx, method, path, body, &list, a.place+" responded with something other than a list of models; check base_url"); err != nil {
		return err
	}
	for _, m := range list.Data {
		// Ollama lists a model without a tag as NAME:latest.
		if m.ID == a.cfg.Model || strings.TrimSuffix(m.ID, ":latest") == a.cfg.Model {
			return nil
		}
	}
	if len(list.Data) == 0 {
		return nil // some servers list no models but serve them
	}
	return fmt.Errorf("%s does not list the model %s", a.place, a.cfg.Model)
}
