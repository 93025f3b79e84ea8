package usage

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
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

// Amount is an amount of money in billionths of a currency unit. It is never negative. Results above the maximum, 9.2 billion,
// become the maximum.
type Amount int64

// decimals is the number of decimal places of an Amount.
const decimals = 9

// unit is the Amount of one currency unit.
const unit = 1_000_000_000

var errAmount = errors.New("invalid amount; write it as 3, 0.25 or 0.0375")

// ParseAmount parses a decimal number such as 3, 0.25 or 0.0375. It refuses more than nine significant decimal places, because
// the amount would silently differ from the text.
func ParseAmount(s string) (Amount, error) {
	a, exact, err := parse(s)
	if err == nil && !exact {
		err = fmt.Errorf("at most %d decimal places", decimals)
	}
	if err != nil {
		return 0, fmt.Errorf("%q: %w", s, err)
	}
	return a, nil
}

// parse parses a decimal number and rounds it to an Amount. exact is false if it was rounded.
func parse(s string) (a Amount, exact bool, err error) {
	integer, fraction, point := strings.Cut(strings.TrimSpace(s), ".")
	if integer == "" || (point && fraction == "") || strings.ContainsFunc(integer+fraction, func(r rune) bool { return r < '0' || r > '9' }) {
		return 0, false, errAmount
	}
	w, err := strconv.ParseInt(integer, 10, 64)
	if err != nil || w > math.MaxInt64/unit-1 {
		return 0, false, errors.New("amount is too large")
	}
	a, exact = Amount(w*unit), true
	for i, worth := 0, int64(unit/10); i < len(fraction); i, worth = i+1, worth/10 {
		digit := int64(fraction[i] - '0')
		a += Amount(digit * worth)
		if worth == 0 && digit > 0 {
			exact = false
		}
		if i == decimals && digit >= 5 {
			a++
		}
	}
	return a, exact, nil
}

// fromFloat converts a cost that an agent reported as a JSON number. It uses the shortest decimal number that represents f,
// which is what the agent wrote. It returns false if f is negative, too large or not a number.
func fromFloat(f float64) (Amount, bool) {
	if math.IsNaN(f) || f < 0 || f > float64(math.MaxInt64/unit-1) {
		return 0, false
	}
	a, _, err := parse(strconv.FormatFloat(f, 'f', -1, 64))
	return a, err == nil
}

// plus returns the sum, or the maximum if it overflows.
func (a Amount) plus(b Amount) Amount {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxInt64
}

// String returns the amount without trailing zeros, such as 3, 0.25 or 0.0375. ParseAmount reads it back unchanged.
func (a Amount) String() string {
	s := strconv.FormatInt(int64(a/unit), 10)
	if part := int64(a % unit); part > 0 {
		s += "." + strings.TrimRight(fmt.Sprintf("%0*d", decimals, part), "0")
	}
	return s
}

// MarshalText writes the amount as a decimal number. It implements [encoding.TextMarshaler].
func (a Amount) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (a *Amount) UnmarshalText(b []byte) (err error) {
	*a, err = ParseAmount(string(b))
	return err
}

// product is the exact sum of tokens × price per million tokens, as a 128-bit number. It is rounded once, at the end.
type product struct{ high, low uint64 }

// add adds tokens at a price per million tokens. Negative counts or prices are ignored.
func (p *product) add(tokens int64, million Amount) {
	if tokens <= 0 || million <= 0 {
		return
	}
	high, low := bits.Mul64(uint64(tokens), uint64(million))
	var carry uint64
	p.low, carry = bits.Add64(p.low, low, 0)
	p.high += high + carry // can't overflow: four counts (reasoning is part of the output) and prices are below 2^63
}

// round divides by a million and rounds half up.
func (p product) round() Amount {
	const million = 1_000_000
	low, carry := bits.Add64(p.low, million/2, 0)
	high := p.high + carry
	if high >= million {
		return math.MaxInt64
	}
	q, _ := bits.Div64(high, low, million)
	return Amount(min(q, math.MaxInt64))
}
