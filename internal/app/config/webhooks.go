package config

import (
	"fmt"

	"github.com/goccy/go-yaml"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/service/webhook"
)

// Webhook is a program elsewhere that is told of what happens.
type Webhook struct {
	Name         string   `yaml:"name"`
	URL          string   `yaml:"url"`
	Secret       string   `yaml:"secret"`
	Events       []string `yaml:"events"`
	Content      bool     `yaml:"content"`
	AllowPrivate bool     `yaml:"allow_private"`
}

// Webhooks are the configured webhooks. In the environment they are written as in a file, on one line.
type Webhooks []Webhook

// parse replaces the webhooks by those that are written as YAML.
func (w *Webhooks) parse(s string) error {
	var all []Webhook
	if err := yaml.UnmarshalWithOptions([]byte(s), &all, yaml.Strict()); err != nil {
		return fmt.Errorf("a list is expected, such as [{name: a, url: https://example.com, secret: …}]: %s", yaml.FormatError(err, false, false))
	}
	*w = all
	return nil
}

// Hooks returns the webhooks as those are made who deliver.
func (w Webhooks) Hooks() []webhook.Hook {
	all := make([]webhook.Hook, len(w))
	for i, one := range w {
		all[i] = webhook.Hook{Name: one.Name, URL: one.URL, Secret: one.Secret, Content: one.Content, AllowPrivate: one.AllowPrivate}
		for _, t := range one.Events {
			all[i].Events = append(all[i].Events, event.Type(t))
		}
	}
	return all
}

func (w Webhooks) check(bad func(key, format string, args ...any)) {
	seen := map[string]bool{}
	for i, h := range w.Hooks() {
		for _, err := range h.Check() {
			bad(fmt.Sprintf("webhooks: %d (%s)", i+1, h.Name), "%w", err)
		}
		if seen[h.Name] {
			bad("webhooks", "two are named %q", h.Name)
		}
		seen[h.Name] = true
	}
}

func (w Webhooks) masked() Webhooks {
	all := append(Webhooks{}, w...)
	for i := range all {
		all[i].URL = agent.MaskURLs(all[i].URL)
		if all[i].Secret != "" {
			all[i].Secret = "***"
		}
	}
	return all
}
