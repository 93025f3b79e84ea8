package usage

import (
	"cmp"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
)

// DefaultCurrency is the currency of a price without one, and of a cost that an agent reports for a model without a price.
const DefaultCurrency = "USD"

// Price is the cost of a million tokens of a model. If CacheRead or CacheWrite is nil, they cost as much as Input; if Reasoning
// is nil, it costs as much as Output.
type Price struct {
	Model                            string // a pattern in which * matches any text, also none
	Input, Output                    Amount
	CacheRead, CacheWrite, Reasoning *Amount
	Currency                         string
}

// Prices are tried in order. The first one whose model matches applies.
type Prices []Price

// find returns the price of a model, or nil if no pattern matches.
func (p Prices) find(model string) *Price {
	if i := slices.IndexFunc(p, func(price Price) bool { return matches(price.Model, model) }); i >= 0 {
		return &p[i]
	}
	return nil
}

// matches reports whether a name matches a pattern. Its time is at most proportional to the product of their lengths, so a
// hostile model name can't stall the gateway.
func matches(pattern, name string) bool {
	head, tail, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	if !strings.HasPrefix(name, head) {
		return false
	}
	name = name[len(head):]
	for {
		piece, remainder, star := strings.Cut(tail, "*")
		if !star {
			return strings.HasSuffix(name, piece)
		}
		i := strings.Index(name, piece)
		if i < 0 {
			return false
		}
		name, tail = name[i+len(piece):], remainder
	}
}

// Cost returns the cost of a turn: the one that its agent reported, or else the cost of its tokens. ok is false if neither is
// known.
func (p Prices) Cost(u *event.Usage) (a Amount, currency string, ok bool) {
	price := p.find(u.Model)
	currency = DefaultCurrency
	if price != nil {
		currency = cmp.Or(price.Currency, DefaultCurrency)
	}
	if u.Cost != 0 {
		if a, ok = fromFloat(u.Cost); ok {
			return a, currency, true
		}
	}
	if price == nil {
		return 0, "", false
	}
	return price.cost(u), currency, true
}

// cost returns the cost of the tokens. Output includes the reasoning tokens, which are priced separately. Input excludes the
// cache tokens.
func (p *Price) cost(u *event.Usage) Amount {
	reasoning := min(max(u.Reasoning, 0), max(u.Output, 0))
	var sum product
	sum.add(u.Input, p.Input)
	sum.add(u.CacheRead, *cmp.Or(p.CacheRead, &p.Input))
	sum.add(u.CacheWrite, *cmp.Or(p.CacheWrite, &p.Input))
	sum.add(u.Output-reasoning, p.Output)
	sum.add(reasoning, *cmp.Or(p.Reasoning, &p.Output))
	return sum.round()
}
