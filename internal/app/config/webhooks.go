package config

import (
	"fmt"

	"github.com/goccy/go-yaml"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/service/webhook"
)

// hook configures a URL that receives events. Package webhook documents the fields.
type hook struct {
	Name         string   `yaml:"name"`
	URL          string   `yaml:"url"`
	Secret       string   `yaml:"secret"`
	Events       []string `yaml:"events"`
	Content      bool     `yaml:"content"`
	AllowPrivate bool     `yaml:"allow_private"`
}

// Webhooks are the configured webhooks. In the environment they are written as in the file, on one line.
type Webhooks []hook

// parse replaces the webhooks with those of a line of YAML. Unknown keys are errors, as in the file. The error omits
// the line, which contains secrets.
func (w *Webhooks) parse(s string) error {
	var hooks Webhooks
	if err := yaml.UnmarshalWithOptions([]byte(s), &hooks, yaml.Strict()); err != nil {
		return fmt.Errorf("expected a list such as [{name: a, url: https://example.com, secret: …}]: %s", yaml.FormatError(err, false, false))
	}
	*w = hooks
	return nil
}

// Hooks returns the webhooks in the form of package webhook.
func (w Webhooks) Hooks() []webhook.Hook {
	hooks := make([]webhook.Hook, len(w))
	for i, h := range w {
		hooks[i] = webhook.Hook{Name: h.Name, URL: h.URL, Secret: h.Secret, Content: h.Content, AllowPrivate: h.AllowPrivate}
		for _, t := range h.Events {
			hooks[i].Events = append(hooks[i].Events, event.Type(t))
		}
	}
	return hooks
}

// check checks each webhook, which is named by its position and name, and that names are unique: the name identifies
// a webhook in the outbox and in metrics.
func (w Webhooks) check(bad reporter) {
	names := map[string]bool{}
	for i, h := range w.Hooks() {
		for _, err := range h.Check() {
			bad(fmt.Sprintf("webhooks: %d (%s)", i+1, h.Name), "%w", err)
		}
		if names[h.Name] {
			bad("webhooks", "two webhooks have the name %q", h.Name)
		}
		names[h.Name] = true
	}
}

// masked returns a copy without secrets.
func (w Webhooks) masked() Webhooks {
	hooks := append(Webhooks{}, w...)
	for i := range hooks {
		hooks[i].URL = agent.MaskURLs(hooks[i].URL)
		mask(&hooks[i].Secret)
	}
	return hooks
}
