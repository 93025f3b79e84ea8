package config

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/leat-dev/leat/internal/service/usage"
)

// Prices are what a million tokens of a model cost, in the order of the file: the first that fits counts. In the file they are
// a mapping from models to mappings: input, output, cache_read, cache_write, reasoning and currency. In the environment they
// are written as in a file, on one line.
type Prices []usage.Price

var currencies = regexp.MustCompile(`^[A-Z]{3,8}$`)

// UnmarshalYAML implements [yaml.NodeUnmarshaler].
func (p *Prices) UnmarshalYAML(n ast.Node) error {
	all, err := entries(n)
	if err != nil {
		return fmt.Errorf("prices: %w", err)
	}
	list := Prices{}
	for _, e := range all {
		one, err := price(e)
		if err != nil {
			return fmt.Errorf("prices: %s: %w", e.key, err)
		}
		list = append(list, one)
	}
	*p = list
	return nil
}

func price(e entry) (usage.Price, error) {
	p := usage.Price{Model: e.key, Currency: usage.DefaultCurrency}
	if p.Model == "" {
		return p, errors.New("the name of a model is expected, in which * stands for anything")
	}
	settings, err := entries(e.value)
	if err != nil {
		return p, err
	}
	amounts := map[string]*usage.Amount{}
	for _, s := range settings {
		v, err := scalar(s.value)
		if err != nil {
			return p, fmt.Errorf("%s: %w", s.key, err)
		}
		switch s.key {
		case "currency":
			if !currencies.MatchString(v) {
				return p, fmt.Errorf("currency: %q is none; write it as USD", v)
			}
			p.Currency = v
		case "input", "output", "cache_read", "cache_write", "reasoning":
			a, err := usage.ParseAmount(v)
			if err != nil {
				return p, fmt.Errorf("%s: %w", s.key, err)
			}
			amounts[s.key] = &a
		default:
			return p, fmt.Errorf("unknown key %q; there are input, output, cache_read, cache_write, reasoning and currency", s.key)
		}
	}
	if amounts["input"] == nil || amounts["output"] == nil {
		return p, errors.New("input and output are needed: what a million tokens cost")
	}
	p.Input, p.Output = *amounts["input"], *amounts["output"]
	p.CacheRead, p.CacheWrite, p.Reasoning = amounts["cache_read"], amounts["cache_write"], amounts["reasoning"]
	return p, nil
}

// MarshalYAML implements [yaml.InterfaceMarshaler].
func (p Prices) MarshalYAML() (any, error) {
	all := make(yaml.MapSlice, 0, len(p))
	for _, one := range p {
		m := yaml.MapSlice{{Key: "input", Value: one.Input.String()}, {Key: "output", Value: one.Output.String()}}
		for _, o := range []struct {
			key string
			a   *usage.Amount
		}{{"cache_read", one.CacheRead}, {"cache_write", one.CacheWrite}, {"reasoning", one.Reasoning}} {
			if o.a != nil {
				m = append(m, yaml.MapItem{Key: o.key, Value: o.a.String()})
			}
		}
		m = append(m, yaml.MapItem{Key: "currency", Value: cmp.Or(one.Currency, usage.DefaultCurrency)})
		all = append(all, yaml.MapItem{Key: one.Model, Value: m})
	}
	return all, nil
}

// List returns the prices as the gateway takes them.
func (p Prices) List() usage.Prices { return usage.Prices(p) }

// parse replaces the prices by those that are written as YAML.
func (p *Prices) parse(s string) error {
	f, err := parser.ParseBytes([]byte(s), 0)
	if err != nil || len(f.Docs) != 1 || f.Docs[0].Body == nil {
		return errors.New(`a mapping is expected, such as {"gpt-*": {input: 1.25, output: 10}}`)
	}
	return p.UnmarshalYAML(f.Docs[0].Body)
}
