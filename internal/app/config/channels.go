package config

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/channel/all"
)

// Channels are the built-in channels, in the order of the file. In the file they are a mapping from names to mappings with the
// key kind, which is the name if it is omitted, and the options of the kind.
type Channels []agent.Spec

// UnmarshalYAML implements [yaml.NodeUnmarshaler].
func (c *Channels) UnmarshalYAML(n ast.Node) error {
	*c = nil
	members, err := entries(n)
	if err != nil {
		return fmt.Errorf("channels: %w", err)
	}
	for _, e := range members {
		s := agent.Spec{Name: e.key, Kind: e.key, Options: map[string]string{}}
		settings, err := entries(e.value)
		if err != nil {
			return fmt.Errorf("channels: %s: %w", e.key, err)
		}
		for _, o := range settings {
			v, err := scalars(o.value)
			if err != nil {
				return fmt.Errorf("channels: %s: %s: %w", e.key, o.key, err)
			}
			if o.key == "kind" {
				s.Kind = v
			} else {
				s.Options[o.key] = v
			}
		}
		*c = append(*c, s)
	}
	return nil
}

// MarshalYAML implements [yaml.InterfaceMarshaler]. The result can be read again.
func (c Channels) MarshalYAML() (any, error) { return Agents(c).MarshalYAML() }

// Parse replaces the channels with those of the specs, which [agent.ParseSpec] describes.
func (c *Channels) Parse(specs []string) (err error) {
	*c, err = parseSpecs("channel", specs)
	return err
}

// scalars returns a value, or the values of a list separated by commas.
func scalars(n ast.Node) (string, error) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		return scalar(n)
	}
	values := make([]string, len(list.Values))
	for i, v := range list.Values {
		var err error
		if values[i], err = scalar(v); err != nil {
			return "", err
		}
	}
	return strings.Join(values, ","), nil
}

// checkChannels makes each channel, which connects to nothing, and checks that their names are unique.
func (c *Config) checkChannels(bad reporter) {
	names := map[string]bool{}
	for _, s := range c.Channels {
		if names[s.Name] {
			bad("channels", "two channels have the name %q", s.Name)
		}
		names[s.Name] = true
		if _, _, err := all.New(s, slog.New(slog.DiscardHandler)); err != nil {
			bad("channels", "%w", err)
		}
	}
}

// masked returns a copy without secrets.
func (c Channels) masked() Channels {
	specs := slices.Clone(c)
	for i := range specs {
		specs[i] = all.Masked(specs[i])
	}
	return specs
}
