package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// maxList limits a list of models, in bytes.
const maxList = 8 << 20

// Check implements [agent.Checker]. It succeeds if the provider can be reached, accepts the key and knows the model. It costs
// no tokens.
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
	res, err := a.do(ctx, method, path, "", body)
	if err != nil {
		return a.unreachable(err)
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return a.statusFailure(res)
	}
	if !a.api.isList {
		return nil
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxList)).Decode(&list); err != nil {
		return fmt.Errorf("%s responded with something other than a list of models; check base_url: %w", a.place, err)
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
