package usage

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/leat-dev/leat/event"
)

func TestAmounts(t *testing.T) {
	for in, want := range map[string]string{
		"3": "3", "0": "0", "0.25": "0.25", "0.0375": "0.0375", "15.00": "15", "0.000000001": "0.000000001", "1.0000000000": "1", " 2 ": "2",
		"9000000000": "9000000000",
	} {
		if a, err := ParseAmount(in); err != nil || a.String() != want {
			t.Errorf("%q: %s, %v; want %s", in, a, err, want)
		}
	}
	for _, in := range []string{"", ".", "1.", ".5", "-1", "1e3", "1,5", "0x1", "9300000000", "99999999999999999999", "0.0000000001", "1.2.3", "NaN"} {
		if a, err := ParseAmount(in); err == nil {
			t.Errorf("%q was parsed as %s", in, a)
		}
	}
	for in, want := range map[float64]string{0.1: "0.1", 0.30000000000000004: "0.3", 1e-9: "0.000000001", 5e-10: "0.000000001", 4e-10: "0", 12: "12"} {
		if a, ok := fromFloat(in); !ok || a.String() != want {
			t.Errorf("%v: %s, %v; want %s", in, a, ok, want)
		}
	}
	for _, in := range []float64{math.NaN(), math.Inf(1), -0.1, 1e300} {
		if a, ok := fromFloat(in); ok {
			t.Errorf("%v was converted to %s", in, a)
		}
	}
	if a := Amount(math.MaxInt64).plus(1); a != math.MaxInt64 {
		t.Errorf("maximum plus one is %s", a)
	}
}

// A tenth added a million times is exactly a hundred thousand, unlike with floating-point numbers.
func TestSumsAreExact(t *testing.T) {
	tenth, _ := fromFloat(0.1)
	var sum Amount
	for range 1_000_000 {
		sum = sum.plus(tenth)
	}
	if sum.String() != "100000" {
		t.Errorf("the sum of a million tenths is %s", sum)
	}
}

func amount(s string) *Amount {
	a, err := ParseAmount(s)
	if err != nil {
		panic(err)
	}
	return &a
}

var prices = Prices{
	{Model: "big-1", Input: *amount("3"), Output: *amount("15"), CacheRead: amount("0.3"), CacheWrite: amount("3.75"), Reasoning: amount("20"), Currency: "EUR"},
	{Model: "big-*", Input: *amount("1"), Output: *amount("2")},
	{Model: "*/small*mini", Input: *amount("0.0375"), Output: *amount("0.15")},
	{Model: "free"},
}

func TestCost(t *testing.T) {
	for _, c := range []struct {
		give event.Usage
		want string // "" is unknown
	}{
		{event.Usage{Model: "big-1", Input: 1_000_000, Output: 1_000_000, CacheRead: 1_000_000, CacheWrite: 1_000_000}, "22.05 EUR"},
		{event.Usage{Model: "big-1", Output: 100, Reasoning: 40}, "0.0017 EUR"},
		{event.Usage{Model: "big-1", Output: 100, Reasoning: 400}, "0.002 EUR"}, // it can't be more than all
		{event.Usage{Model: "big-2", Input: 10, CacheRead: 20, CacheWrite: 30, Output: 40, Reasoning: 10}, "0.00014 USD"},
		{event.Usage{Model: "a/small-x-mini", Input: 1}, "0.000000038 USD"}, // 37.5 billionths
		{event.Usage{Model: "small-mini", Input: 1}, ""},
		{event.Usage{Model: "a/small-x-mini2", Input: 1}, ""},
		{event.Usage{Model: "", Input: 1}, ""},
		{event.Usage{Model: "free", Input: 1000}, "0 USD"},
		{event.Usage{Model: "other", Cost: 0.25, Input: 1}, "0.25 USD"},
		{event.Usage{Model: "big-1", Cost: 0.25, Input: 1}, "0.25 EUR"}, // the agent knows better
		{event.Usage{Model: "other", Cost: -1, Input: 1}, ""},
		{event.Usage{Model: "big-2", Cost: math.Inf(1), Input: 1_000_000}, "1 USD"},
		{event.Usage{Model: "big-2", Input: -5, Output: 1_000_000}, "2 USD"},
		{event.Usage{Model: "big-2", Input: math.MaxInt64, Output: math.MaxInt64}, "9223372036.854775807 USD"},
	} {
		got := ""
		if a, currency, ok := prices.Cost(&c.give); ok {
			got = a.String() + " " + currency
		}
		if got != c.want {
			t.Errorf("%+v costs %q, want %q", c.give, got, c.want)
		}
	}
}

// A cost is the exact sum of the products, rounded once.
func TestCostIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tokens := rapid.Int64Range(0, 1<<40)
		million := rapid.Int64Range(0, 1<<40)
		u := event.Usage{Model: "m", Input: tokens.Draw(t, "input"), Output: tokens.Draw(t, "output"), CacheRead: tokens.Draw(t, "read"), CacheWrite: tokens.Draw(t, "write")}
		u.Reasoning = rapid.Int64Range(0, u.Output).Draw(t, "reasoning")
		a := make([]Amount, 5)
		sum := new(big.Int)
		for i, n := range []int64{u.Input, u.Output - u.Reasoning, u.CacheRead, u.CacheWrite, u.Reasoning} {
			a[i] = Amount(million.Draw(t, "price"))
			sum.Add(sum, new(big.Int).Mul(big.NewInt(n), big.NewInt(int64(a[i]))))
		}
		sum.Div(sum.Add(sum, big.NewInt(500_000)), big.NewInt(1_000_000))
		if !sum.IsInt64() {
			sum.SetInt64(math.MaxInt64)
		}
		p := Prices{{Model: "*", Input: a[0], Output: a[1], CacheRead: &a[2], CacheWrite: &a[3], Reasoning: &a[4]}}
		if got, _, ok := p.Cost(&u); !ok || int64(got) != sum.Int64() {
			t.Fatalf("%d, want %s", got, sum)
		}
	})
}
