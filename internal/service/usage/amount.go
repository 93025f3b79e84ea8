package usage

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Amount is an amount of money in billionths of its currency, never negative. What would be above the largest is the
// largest: 9.2 billion.
type Amount int64

// decimals is how many places an Amount has.
const decimals = 9

// unit is how many there are in one of the currency.
const unit = 1_000_000_000

var errAmount = errors.New("it is no amount; write it as 3, 0.25 or 0.0375")

// ParseAmount reads a decimal number such as 3, 0.25 or 0.0375; of more than nine places the rest has to be zeros.
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

// parse reads a decimal number, rounded to an Amount.
func parse(s string) (a Amount, exact bool, err error) {
	integer, fraction, point := strings.Cut(strings.TrimSpace(s), ".")
	if integer == "" || (point && fraction == "") || strings.ContainsFunc(integer+fraction, func(r rune) bool { return r < '0' || r > '9' }) {
		return 0, false, errAmount
	}
	w, err := strconv.ParseInt(integer, 10, 64)
	if err != nil || w > math.MaxInt64/unit-1 {
		return 0, false, errors.New("it is too large")
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

// FromFloat returns the amount that is nearest to the shortest decimal number that stands for f, as an agent wrote it;
// false for what is no amount.
func fromFloat(f float64) (Amount, bool) {
	if math.IsNaN(f) || f < 0 || f > float64(math.MaxInt64/unit-1) {
		return 0, false
	}
	a, _, err := parse(strconv.FormatFloat(f, 'f', -1, 64))
	return a, err == nil
}

// Plus returns the sum.
func (a Amount) plus(b Amount) Amount {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxInt64
}

func (a Amount) String() string {
	s := strconv.FormatInt(int64(a/unit), 10)
	if part := int64(a % unit); part > 0 {
		s += "." + strings.TrimRight(fmt.Sprintf("%0*d", decimals, part), "0")
	}
	return s
}

// MarshalText implements [encoding.TextMarshaler].
func (a Amount) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (a *Amount) UnmarshalText(b []byte) (err error) {
	*a, err = ParseAmount(string(b))
	return err
}

// product sums tokens at prices a million, exactly, until it is rounded.
type product struct{ high, low uint64 }

func (p *product) add(tokens int64, million Amount) {
	if tokens <= 0 || million <= 0 {
		return
	}
	high, low := bits.Mul64(uint64(tokens), uint64(million))
	var carry uint64
	p.low, carry = bits.Add64(p.low, low, 0)
	p.high += high + carry // below 5 * 2^62: a turn has five sorts of tokens
}

// round divides by a million, halves up.
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
