package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/leat-dev/leat/agent"
)

// Agents are the configured agents, in the order of the file. In the file they are a mapping from names to mappings with the keys kind,
// target, silence, description, suggestions and the options of the kind.
type Agents []agent.Spec

// suggestions is the only key of an agent whose value is a list.
const suggestions = "suggestions"

// UnmarshalYAML implements [yaml.NodeUnmarshaler]. It reads the nodes itself instead of a map: the order of agents
// matters, since the first one is the default, and the options of kinds aren't known here. A kind checks its options
// later.
func (a *Agents) UnmarshalYAML(n ast.Node) error {
	*a = nil
	members, err := entries(n)
	if err != nil {
		return fmt.Errorf("agents: %w", err)
	}
	for _, e := range members {
		s := agent.Spec{Name: e.key}
		settings, err := entries(e.value)
		if err != nil {
			return fmt.Errorf("agents: %s: %w", e.key, err)
		}
		options := map[string]string{}
		for _, o := range settings {
			value := scalar
			if o.key == suggestions {
				value = textList
			}
			v, err := value(o.value)
			if err != nil {
				return fmt.Errorf("agents: %s: %s: %w", e.key, o.key, err)
			}
			switch o.key {
			case "kind":
				s.Kind = v
			case "target":
				s.Target = v
			default:
				options[o.key] = v
			}
		}
		if err := s.SetOptions(options); err != nil {
			return fmt.Errorf("agents: %s: %w", e.key, err)
		}
		*a = append(*a, s)
	}
	return nil
}

// MarshalYAML implements [yaml.InterfaceMarshaler]. The result can be read again. A negative limit on silence, which
// means unlimited in the gateway, is written as 0s.
func (a Agents) MarshalYAML() (any, error) {
	members := make(yaml.MapSlice, 0, len(a))
	for _, s := range a {
		m := yaml.MapSlice{{Key: "kind", Value: s.Kind}}
		if s.Target != "" {
			m = append(m, yaml.MapItem{Key: "target", Value: s.Target})
		}
		if s.Silence != 0 {
			m = append(m, yaml.MapItem{Key: "silence", Value: Duration(max(s.Silence, 0)).String()})
		}
		if s.Description != "" {
			m = append(m, yaml.MapItem{Key: "description", Value: s.Description})
		}
		if len(s.Suggestions) > 0 {
			m = append(m, yaml.MapItem{Key: suggestions, Value: s.Suggestions})
		}
		for _, key := range slices.Sorted(maps.Keys(s.Options)) {
			m = append(m, yaml.MapItem{Key: key, Value: s.Options[key]})
		}
		members = append(members, yaml.MapItem{Key: s.Name, Value: m})
	}
	return members, nil
}

// entry is a key of a mapping with its value.
type entry struct {
	key   string
	value ast.Node
	line  int
}

// entries returns the keys of a mapping in their order. Duplicates are errors; null is an empty mapping. A mapping
// with a single key is another type of node in the parser, and is returned like the others.
func entries(n ast.Node) ([]entry, error) {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	case *ast.NullNode:
		return nil, nil
	case *ast.SequenceNode:
		return nil, errors.New("expected a mapping (key: value), got a list")
	default:
		return nil, errors.New("expected a mapping (key: value), got a single value")
	}
	keys := map[string]bool{}
	list := make([]entry, 0, len(values))
	for _, v := range values {
		key, err := scalar(v.Key)
		if err != nil {
			return nil, err
		}
		if keys[key] {
			return nil, fmt.Errorf("duplicate key %s", key)
		}
		keys[key] = true
		list = append(list, entry{key, v.Value, lineOf(v.Key)})
	}
	return list, nil
}

// scalar returns a value exactly as it is written in the file, so that 1.50 does not become 1.5, nor yes become true.
func scalar(n ast.Node) (string, error) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, nil
	}
	return "", fmt.Errorf("expected a single value, got %s", n.Type())
}

// textList returns a list of single values, separated by line breaks. A single value is a list of one.
func textList(n ast.Node) (string, error) {
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
		if strings.Contains(values[i], "\n") {
			return "", fmt.Errorf("%q has several lines; use one", values[i])
		}
	}
	return strings.Join(values, "\n"), nil
}
