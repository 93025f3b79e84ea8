package usage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

func newLedger(t rapid.TB) (*Ledger, *memory.Journal) {
	t.Helper()
	j := memory.New()
	l := New(j, prices, 100*365*24*time.Hour)
	for range 2 { // it may be there already
		if err := l.Open(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	return l, j
}

func write(t rapid.TB, l *Ledger, j *memory.Journal, turns ...Turn) {
	t.Helper()
	b := journal.Batch{Conversation: logID}
	for _, turn := range turns {
		kv, err := l.Entry(turn)
		if err != nil {
			t.Fatal(err)
		}
		if kv.Log != logID || !strings.HasPrefix(kv.Key, Prefix) || kv.Expires <= turn.EndedAt {
			t.Fatalf("the row is %+v", kv)
		}
		b.Keys = append(b.Keys, kv)
	}
	if err := j.Append(context.Background(), b); err != nil {
		t.Fatal(err)
	}
}

// noon returns noon of a day in November 2026.
func noon(day int) int64 { return time.Date(2026, 11, day, 12, 0, 0, 0, time.UTC).UnixMilli() }

func TestSum(t *testing.T) {
	l, j := newLedger(t)
	some := func(id, subject string, day int, u *event.Usage, o event.Outcome) Turn {
		return Turn{ID: id, Agent: "a", Model: "big-2", Tenant: "t", Subject: subject, Outcome: o, Usage: u, StartedAt: noon(day) - 1500, EndedAt: noon(day)}
	}
	never := some("4", "bob", 3, nil, event.Cancelled)
	never.StartedAt = 0
	late := some("5", "ann", 3, &event.Usage{Model: "big-1", Cost: 0.5}, event.Failed)
	late.EndedAt = time.Date(2026, 11, 4, 0, 30, 0, 0, time.FixedZone("", 3600)).UnixMilli() // still the third in UTC
	write(t, l, j,
		some("1", "ann", 2, &event.Usage{Input: 1_000_000, Output: 500_000}, event.Completed),
		some("2", "ann", 2, &event.Usage{Model: "dark", Input: 7, CacheRead: 8, CacheWrite: 9, Reasoning: 1, Output: 2}, event.Completed),
		some("3", "bob", 2, &event.Usage{Input: 1_000_000}, event.Interrupted),
		never, late,
	)
	rep, err := l.Sum(t.Context(), Query{From: "2026-11-02", To: "2026-11-03", GroupBy: []Dimension{ByDay, BySubject}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range rep.Groups {
		got = append(got, fmt.Sprint(g.Day, " ", g.Subject, " ", g.Agent, g.Turns, g.Outcomes, g.Tokens, g.Cost, g.Unpriced, g.Unreported, g.Duration))
	}
	want := []string{
		"2026-11-02 ann 2 map[completed:2] {1000007 500002 8 9 1} map[USD:2] 1 0 3000",
		"2026-11-02 bob 1 map[interrupted:1] {1000000 0 0 0 0} map[USD:1] 0 0 1500",
		"2026-11-03 ann 1 map[failed:1] {0 0 0 0 0} map[EUR:0.5] 0 0 41401500",
		"2026-11-03 bob 1 map[cancelled:1] {0 0 0 0 0} map[] 0 1 0",
	}
	if d := gocmp.Diff(want, got); d != "" {
		t.Errorf("groups (-want +got):\n%s", d)
	}
	if total := fmt.Sprint(rep.Total.Turns, rep.Total.Cost, rep.Currencies()); total != "5 map[EUR:0.5 USD:3] [EUR USD]" {
		t.Errorf("total %s", total)
	}
	ann, other := "ann", "t2"
	for _, c := range []struct {
		q    Query
		want int64
	}{
		{Query{From: "2026-11-03", To: "2026-11-03"}, 2},
		{Query{From: "2026-11-04", To: "2026-12-03"}, 0},
		{Query{From: "2025-11-04", To: "2026-11-02"}, 3},
		{Query{From: "2026-11-01", To: "2026-11-30", Tenant: &never.Tenant, Subject: &ann}, 3},
		{Query{From: "2026-11-01", To: "2026-11-30", Tenant: &never.Tenant}, 5},
		{Query{From: "2026-11-01", To: "2026-11-30", Subject: &ann}, 0}, // of no tenant
		{Query{From: "2026-11-01", To: "2026-11-30", Tenant: &other, Subject: &ann}, 0},
	} {
		rep, err := l.Sum(t.Context(), c.q)
		if err != nil || rep.Total.Turns != c.want || len(rep.Groups) != 0 {
			t.Errorf("%+v: %+v, %v; want %d turns", c.q, rep.Total, err, c.want)
		}
	}
}

func TestQueriesRefused(t *testing.T) {
	l, j := newLedger(t)
	for _, q := range []Query{
		{},
		{From: "2026-11-01", To: "2026-10-31"},
		{From: "2026-11-01", To: "2026-11-31"},
		{From: "2026-11-1", To: "2026-11-30"},
		{From: "2024-01-01", To: "2026-11-30"},
		{From: "2026-11-01", To: "2026-11-30", GroupBy: []Dimension{"week"}},
		{From: "2026-11-01", To: "2026-11-30", GroupBy: []Dimension{"day", "day"}},
	} {
		if _, err := l.Sum(context.Background(), q); !errors.Is(err, ErrQuery) {
			t.Errorf("%+v: %v", q, err)
		}
	}
	var turns []Turn
	for i := range maxGroups + 1 {
		turns = append(turns, Turn{ID: fmt.Sprint(i), Subject: fmt.Sprint(i), EndedAt: noon(1)})
	}
	write(t, l, j, turns...)
	q := Query{From: "2026-11-01", To: "2026-11-30", GroupBy: []Dimension{BySubject}}
	if _, err := l.Sum(context.Background(), q); !errors.Is(err, errGroups) {
		t.Errorf("too many groups: %v", err)
	}
	q.GroupBy = nil
	if rep, err := l.Sum(context.Background(), q); err != nil || rep.Total.Turns != maxGroups+1 {
		t.Errorf("total without groups: %+v, %v", rep, err)
	}
	if _, err := New(j, nil, 0).Entry(Turn{ID: "1"}); err == nil {
		t.Error("a ledger that is not open accepted a row")
	}
}

// For any rows and any query, the report equals a straightforward sum.
func TestSumRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, j := newLedger(t)
		name := rapid.SampledFrom([]string{"", "a", "b", "a\x00b", "ä"})
		var turns []Turn
		for i := range rapid.IntRange(0, 60).Draw(t, "turns") {
			turn := Turn{
				ID: fmt.Sprint(i), Agent: name.Draw(t, "agent"), Tenant: name.Draw(t, "tenant"), Subject: name.Draw(t, "subject"),
				Outcome: rapid.SampledFrom([]event.Outcome{event.Completed, event.Failed}).Draw(t, "outcome"), EndedAt: noon(rapid.IntRange(1, 5).Draw(t, "day")),
			}
			if rapid.Bool().Draw(t, "reported") {
				turn.Usage = &event.Usage{
					Model: rapid.SampledFrom([]string{"big-1", "big-2", "dark", ""}).Draw(t, "model"),
					Input: rapid.Int64Range(0, 1e6).Draw(t, "input"), Output: rapid.Int64Range(0, 1e6).Draw(t, "output"),
				}
			}
			turns = append(turns, turn)
		}
		write(t, l, j, turns...)
		from := rapid.IntRange(1, 5).Draw(t, "from")
		to := rapid.IntRange(from, 6).Draw(t, "to")
		q := Query{From: fmt.Sprintf("2026-11-%02d", from), To: fmt.Sprintf("2026-11-%02d", to)}
		for _, d := range dimensions() {
			if rapid.Bool().Draw(t, "by") {
				q.GroupBy = append(q.GroupBy, d)
			}
		}
		if rapid.Bool().Draw(t, "of a tenant") {
			tenant := name.Draw(t, "tenant asked")
			q.Tenant = &tenant
		}
		if rapid.Bool().Draw(t, "of a subject") {
			subject := name.Draw(t, "subject asked")
			q.Subject = &subject
		}
		type sum struct {
			turns, input, unpriced, unreported int64
			cost                               map[string]*big.Int
		}
		want := map[string]*sum{}
		for _, turn := range turns {
			day := time.UnixMilli(turn.EndedAt).UTC().Day()
			if day < from || day > to || q.Tenant != nil && turn.Tenant != *q.Tenant || q.Subject != nil && turn.Subject != *q.Subject ||
				q.Subject != nil && q.Tenant == nil && turn.Tenant != "" {
				continue
			}
			key := ""
			for _, d := range q.GroupBy {
				model := ""
				if turn.Usage != nil {
					model = turn.Usage.Model
				}
				key += map[Dimension]string{
					ByDay: fmt.Sprintf("2026-11-%02d", day), byAgent: turn.Agent, byModel: model, ByTenant: turn.Tenant, BySubject: turn.Subject,
				}[d] + "|"
			}
			s := want[key]
			if s == nil {
				s = &sum{cost: map[string]*big.Int{}}
				want[key] = s
			}
			s.turns++
			if turn.Usage == nil {
				s.unreported++
				continue
			}
			s.input += turn.Usage.Input
			a, currency, ok := prices.Cost(turn.Usage)
			if !ok {
				s.unpriced++
				continue
			}
			s.cost[currency] = new(big.Int).Add(cmp.Or(s.cost[currency], new(big.Int)), big.NewInt(int64(a)))
		}
		rep, err := l.Sum(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		check := func(key string, g *Sums) {
			s := want[key]
			if s == nil {
				s = &sum{}
			}
			if g.Turns != s.turns || g.Input != s.input || g.Unpriced != s.unpriced || g.Unreported != s.unreported || len(g.Cost) != len(s.cost) {
				t.Fatalf("%q: %+v, want %+v", key, g, s)
			}
			for currency, a := range g.Cost {
				if int64(a) != s.cost[currency].Int64() {
					t.Fatalf("%q: %s %s, want %s", key, a, currency, s.cost[currency])
				}
			}
		}
		if len(q.GroupBy) == 0 {
			check("", &rep.Total)
			return
		}
		if len(rep.Groups) != len(want) {
			t.Fatalf("%d groups, want %d", len(rep.Groups), len(want))
		}
		var turnsIn int64
		var order [][]string
		for _, g := range rep.Groups {
			var names []string
			key := ""
			for _, d := range q.GroupBy {
				names = append(names, g.Name(d))
				key += g.Name(d) + "|"
			}
			check(key, &g.Sums)
			turnsIn += g.Turns
			order = append(order, names)
		}
		if turnsIn != rep.Total.Turns || !slices.IsSortedFunc(order, slices.Compare[[]string]) {
			t.Fatalf("%d turns of %d in the groups, in the order %v", turnsIn, rep.Total.Turns, order)
		}
	})
}
