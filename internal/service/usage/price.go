package usage

import (
	"cmp"
	"strings"

	"github.com/leat-dev/leat/event"
)

// DefaultCurrency is that of a price that names none, and of a cost that an agent tells of a model without a price.
const DefaultCurrency = "USD"

// Price is what a million tokens of a model cost. CacheRead and CacheWrite cost what Input does where they are nil,
// Reasoning what Output does.
type Price struct {
	Model                            string // where a * stands for anything, also nothing
	Input, Output                    Amount
	CacheRead, CacheWrite, Reasoning *Amount
	Currency                         string
}

// Prices are looked through in their order; the first whose model fits counts.
type Prices []Price

// Of returns a model's price, nil where there is none.
func (p Prices) find(model string) *Price {
	for i := range p {
		if matches(p[i].Model, model) {
			return &p[i]
		}
	}
	return nil
}

// matches reports whether a name fits a pattern. It takes time in proportion to the product of their lengths.
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

// Cost returns what a turn cost: what its agent said, else what its tokens come to. false says that nobody knows.
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

// cost is what the tokens come to. Those of reasoning are among those of the output, those of the cache are not among those of
// the input.
func (p *Price) cost(u *event.Usage) Amount {
	reasoning := min(max(u.Reasoning, 0), max(u.Output, 0))
	var sum product
	sum.add(u.Input, p.Input)
	sum.add(u.CacheRead, or(p.CacheRead, p.Input))
	sum.add(u.CacheWrite, or(p.CacheWrite, p.Input))
	sum.add(u.Output-reasoning, p.Output)
	sum.add(reasoning, or(p.Reasoning, p.Output))
	return sum.round()
}

func or(a *Amount, b Amount) Amount {
	if a != nil {
		return *a
	}
	return b
}
