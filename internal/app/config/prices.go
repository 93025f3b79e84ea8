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

// Prices are the prices of a million tokens for models, in the order of the file. The first one whose pattern matches a model applies. In the
// file they are a mapping from patterns to mappings with the keys input, output, cache_read, cache_write, reasoning and currency. In the
// environment they are written as in the file, on one line.
type Prices []usage.Price

// currencies matches the names of currencies: three letters as in ISO 4217, or more for a unit of the operator's own,
// such as CREDITS.
var currencies = regexp.MustCompile(`^[A-Z]{3,8}$`)

// UnmarshalYAML implements [yaml.NodeUnmarshaler]. It keeps the order of the file, since the first pattern that
// matches a model applies.
func (p *Prices) UnmarshalYAML(n ast.Node) error {
	models, err := entries(n)
	if err != nil {
		return fmt.Errorf("prices: %w", err)
	}
	list := Prices{}
	for _, e := range models {
		modelPrice, err := price(e)
		if err != nil {
			return fmt.Errorf("prices: %s: %w", e.key, err)
		}
		list = append(list, modelPrice)
	}
	*p = list
	return nil
}

// price returns the price of an entry. Amounts are parsed from the text of the file as decimal numbers, because
// binary fractions would add rounding errors to the costs. input and output are required. Without a price of their
// own, tokens of the cache cost as much as input.
func price(e entry) (usage.Price, error) {
	p := usage.Price{Model: e.key, Currency: usage.DefaultCurrency}
	if p.Model == "" {
		return p, errors.New("expected the name of a model, in which * matches anything")
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
				return p, fmt.Errorf("currency: invalid currency %q; write it as USD", v)
			}
			p.Currency = v
		case "input", "output", "cache_read", "cache_write", "reasoning":
			a, err := usage.ParseAmount(v)
			if err != nil {
				return p, fmt.Errorf("%s: %w", s.key, err)
			}
			amounts[s.key] = &a
		default:
			return p, fmt.Errorf("unknown key %q; use input, output, cache_read, cache_write, reasoning and currency", s.key)
		}
	}
	if amounts["input"] == nil || amounts["output"] == nil {
		return p, errors.New("input and output are required: the price of a million tokens")
	}
	p.Input, p.Output = *amounts["input"], *amounts["output"]
	p.CacheRead, p.CacheWrite, p.Reasoning = amounts["cache_read"], amounts["cache_write"], amounts["reasoning"]
	return p, nil
}

// MarshalYAML implements [yaml.InterfaceMarshaler]. The result can be read again; the currency is always written.
func (p Prices) MarshalYAML() (any, error) {
	models := make(yaml.MapSlice, 0, len(p))
	for _, modelPrice := range p {
		m := yaml.MapSlice{{Key: "input", Value: modelPrice.Input.String()}, {Key: "output", Value: modelPrice.Output.String()}}
		for _, o := range []struct {
			key string
			a   *usage.Amount
		}{{"cache_read", modelPrice.CacheRead}, {"cache_write", modelPrice.CacheWrite}, {"reasoning", modelPrice.Reasoning}} {
			if o.a != nil {
				m = append(m, yaml.MapItem{Key: o.key, Value: o.a.String()})
			}
		}
		m = append(m, yaml.MapItem{Key: "currency", Value: cmp.Or(modelPrice.Currency, usage.DefaultCurrency)})
		models = append(models, yaml.MapItem{Key: modelPrice.Model, Value: m})
	}
	return models, nil
}

// parse replaces the prices with those of a line of YAML.
func (p *Prices) parse(s string) error {
	f, err := parser.ParseBytes([]byte(s), 0)
	if err != nil || len(f.Docs) != 1 || f.Docs[0].Body == nil {
		return errors.New(`expected a mapping such as {"gpt-*": {input: 1.25, output: 10}}`)
	}
	return p.UnmarshalYAML(f.Docs[0].Body)
}
