package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/app/config"
	"github.com/leat-dev/leat/internal/service/usage"
)

func TestPrices(t *testing.T) {
	const text = `
prices:
  "big-1": {input: 3, output: 15.00, cache_read: 0.3, cache_write: 3.75, reasoning: 20, currency: EUR}
  "*": {input: 0.0375, output: 0.15}
  never-reached: {input: 1, output: 1}
`
	c, err := config.Load(write(t, text), env())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check(kinds, getenv); err != nil {
		t.Error(err)
	}
	const line = `{big-1: {input: 3, output: 15.00, cache_read: 0.3, cache_write: 3.75, reasoning: 20, currency: EUR}, "*": {input: 0.0375, output: 0.15}}`
	same, err := config.Load("", env("LEAT_PRICES", line))
	if err != nil {
		t.Fatal(err)
	}
	printed, err := c.YAML(kinds)
	if err != nil {
		t.Fatal(err)
	}
	again, err := config.Load(write(t, string(printed)), env())
	if err != nil {
		t.Fatalf("what is printed can't be read: %v\n%s", err, printed)
	}
	for name, c := range map[string]config.Config{"file": c, "environment": same, "printed": again} {
		for model, want := range map[string]string{"big-1": "42.0015 EUR", "never-reached": "0.187501875 USD"} {
			u := event.Usage{Model: model, Input: 1_000_000, Output: 1_000_000, CacheRead: 1_000_000, CacheWrite: 6_320_400}
			if model != "big-1" {
				u.CacheRead, u.CacheWrite, u.Input = 0, 0, 1_000_050
			}
			a, currency, _ := usage.Prices(c.Prices).Cost(&u)
			if got := a.String() + " " + currency; got != want {
				t.Errorf("%s: %s costs %s, want %s", name, model, got, want)
			}
		}
	}
}

func TestPricesRefused(t *testing.T) {
	for text, want := range map[string]string{
		"prices: {a: {input: 1}}":                               "input and output are required",
		"prices: {a: {input: 1, output: x}}":                    "invalid amount",
		"prices: {a: {input: 1, output: -1}}":                   "invalid amount",
		"prices: {a: {input: 1, output: 1e3}}":                  "invalid amount",
		"prices: {a: {input: 1, output: 2, price: 3}}":          "unknown key",
		"prices: {a: {input: 1, output: 2, currency: dollars}}": "write it as USD",
		"prices: {a: {input: 1, output: 2, input: 3}}":          "input",
		"prices: {a: 3}":                                        "expected a mapping",
		"prices: [a]":                                           "expected a mapping",
		`prices: {"": {input: 1, output: 2}}`:                   "the name of a model",
	} {
		if _, err := config.Load(write(t, text), env()); !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	for _, v := range []string{"x", "[a]", "{", "{a: {input: 1}}"} {
		if _, err := config.Load("", env("LEAT_PRICES", v)); !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), "LEAT_PRICES") {
			t.Errorf("%q: %v", v, err)
		}
	}
}
