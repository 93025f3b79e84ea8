package usage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leat-dev/leat/event"
)

// Dimension is what sums are grouped by.
type Dimension string

// The dimensions.
const (
	ByDay     Dimension = "day"
	byAgent   Dimension = "agent"
	byModel   Dimension = "model"
	ByTenant  Dimension = "tenant"
	BySubject Dimension = "subject"
)

// Dimensions lists all of them.
func dimensions() []Dimension { return []Dimension{ByDay, byAgent, byModel, ByTenant, BySubject} }

const (
	// MaxDays bounds how many days a query spans: what is kept by default, and the year before.
	maxDays = 800
	// MaxGroups bounds how many groups an answer has: some 4 MB of JSON.
	maxGroups = 10_000
	// page is how many rows are read at once.
	page = 1000
)

var (
	// ErrQuery says that a query can't be answered as it is.
	ErrQuery = errors.New("usage: invalid query")
	// ErrGroups says that an answer would have more than MaxGroups groups.
	errGroups = fmt.Errorf("%w: more than %d groups; ask for fewer days, or group by less", ErrQuery, maxGroups)
)

// Query selects rows and says how they are grouped.
type Query struct {
	From, To string // days, both included; such as 2026-11-21
	GroupBy  []Dimension
	// Tenant and Subject select rows where they are not nil. Of a subject without a tenant those of the tenant without a
	// name are meant.
	Tenant, Subject *string
}

// Check reports, wrapping ErrQuery, what is wrong with a query.
func (q *Query) Check() error {
	_, err := q.days()
	if err != nil {
		return err
	}
	for i, d := range q.GroupBy {
		if !slices.Contains(dimensions(), d) {
			return fmt.Errorf("%w: by %q; it is one or several of day, agent, model, tenant and subject", ErrQuery, d)
		}
		if slices.Contains(q.GroupBy[:i], d) {
			return fmt.Errorf("%w: by %s twice", ErrQuery, d)
		}
	}
	return nil
}

func (q *Query) days() ([]string, error) {
	from, err := time.Parse(dayFormat, q.From)
	if err != nil {
		return nil, fmt.Errorf("%w: from %q is no day; write it as 2026-11-21", ErrQuery, q.From)
	}
	to, err := time.Parse(dayFormat, q.To)
	if err != nil {
		return nil, fmt.Errorf("%w: to %q is no day; write it as 2026-11-21", ErrQuery, q.To)
	}
	n := int(to.Sub(from)/(24*time.Hour)) + 1
	if n < 1 || n > maxDays {
		return nil, fmt.Errorf("%w: from %s to %s are %d days; it is 1 to %d", ErrQuery, q.From, q.To, n, maxDays)
	}
	days := make([]string, n)
	for i := range days {
		days[i] = from.AddDate(0, 0, i).Format(dayFormat)
	}
	return days, nil
}

// Names tell groups apart. Those are set by which the query groups.
type groupNames struct {
	Day     string `json:"day,omitempty"`
	Agent   string `json:"agent,omitempty"`
	Model   string `json:"model,omitempty"`
	Tenant  string `json:"tenant,omitempty"`
	Subject string `json:"subject,omitempty"`
}

// Name returns the name in one dimension.
func (n *groupNames) Name(d Dimension) string { return *n.of(d) }

func (n *groupNames) of(d Dimension) *string {
	switch d {
	case ByDay:
		return &n.Day
	case byAgent:
		return &n.Agent
	case byModel:
		return &n.Model
	case ByTenant:
		return &n.Tenant
	}
	return &n.Subject
}

// Group is what the rows of a group come to.
type Group struct {
	groupNames
	Sums
}

// Sums are sums over turns.
type Sums struct {
	Turns    int64                   `json:"turns"`
	Outcomes map[event.Outcome]int64 `json:"outcomes"`
	Tokens
	// Cost is by currency: amounts of different ones are never added.
	Cost map[string]Amount `json:"cost"`
	// Unpriced counts the turns that told their usage, and of which nobody knows the cost.
	Unpriced int64 `json:"unpriced"`
	// Unreported counts the turns that told no usage.
	Unreported int64 `json:"unreported"`
	Duration   int64 `json:"duration"` // milliseconds
}

func (s *Sums) add(r *Row) {
	if s.Outcomes == nil {
		s.Outcomes, s.Cost = map[event.Outcome]int64{}, map[string]Amount{}
	}
	s.Turns++
	s.Outcomes[r.Outcome]++
	s.Tokens.add(&r.Tokens)
	s.Duration += r.Duration
	switch {
	case r.Currency != "":
		s.Cost[r.Currency] = s.Cost[r.Currency].plus(r.Cost)
	case r.Reported:
		s.Unpriced++
	default:
		s.Unreported++
	}
}

// Report is the answer to a query.
type Report struct {
	From    string      `json:"from"`
	To      string      `json:"to"`
	Zone    string      `json:"timezone"` // UTC
	GroupBy []Dimension `json:"by"`
	Groups  []*Group    `json:"groups"` // in the order of their names
	Total   Sums        `json:"total"`
}

// Currencies lists the currencies of the report's costs, sorted.
func (r *Report) Currencies() []string {
	var currencies []string
	for c := range r.Total.Cost {
		currencies = append(currencies, c)
	}
	slices.Sort(currencies)
	return currencies
}

// Sum answers a query. Errors wrap ErrQuery where the query is at fault.
func (l *Ledger) Sum(ctx context.Context, q Query) (*Report, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	rep := &Report{From: q.From, To: q.To, Zone: "UTC", GroupBy: append([]Dimension{}, q.GroupBy...), Groups: []*Group{}}
	rep.Total.Outcomes, rep.Total.Cost = map[event.Outcome]int64{}, map[string]Amount{}
	groups := map[groupNames]*Group{}
	err := l.eachRow(ctx, &q, func(r *Row) error {
		rep.Total.add(r)
		if len(q.GroupBy) == 0 {
			return nil
		}
		row, name := groupNames{r.Day, r.Agent, r.Model, r.Tenant, r.Subject}, groupNames{}
		for _, d := range q.GroupBy {
			*name.of(d) = *row.of(d)
		}
		g := groups[name]
		if g == nil {
			if len(groups) == maxGroups {
				return errGroups
			}
			g = &Group{groupNames: name}
			groups[name] = g
			rep.Groups = append(rep.Groups, g)
		}
		g.add(r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rep.Groups, func(a, b *Group) int {
		for _, d := range q.GroupBy {
			if c := strings.Compare(a.Name(d), b.Name(d)); c != 0 {
				return c
			}
		}
		return 0
	})
	return rep, nil
}

// each calls f with the rows of a query.
func (l *Ledger) eachRow(ctx context.Context, q *Query, f func(*Row) error) error {
	if q.Subject == nil {
		return l.scan(ctx, q, Prefix, Prefix+q.From, f)
	}
	days, err := q.days()
	if err != nil {
		return err
	}
	tenant := ""
	if q.Tenant != nil {
		tenant = *q.Tenant
	}
	for _, d := range days {
		if err := l.scan(ctx, q, subjectPrefix(d, tenant, *q.Subject), "", f); err != nil {
			return err
		}
	}
	return nil
}

// scan calls f with the query's rows among the keys with a prefix that come after one.
func (l *Ledger) scan(ctx context.Context, q *Query, prefix, after string, f func(*Row) error) error {
	for {
		keys, err := l.store.KeysAfter(ctx, prefix, after, page)
		if err != nil {
			return fmt.Errorf("usage: %w", err)
		}
		for _, kv := range keys {
			after = kv.Key
			if dayOfKey(kv.Key) > q.To {
				return nil
			}
			if kv.Value == nil {
				continue // it is damaged; the journal has logged it
			}
			r, err := rowOf(kv)
			if err != nil {
				return err
			}
			if !q.selects(&r) {
				continue
			}
			if err := f(&r); err != nil {
				return err
			}
		}
		if len(keys) < page {
			return nil
		}
	}
}

func (q *Query) selects(r *Row) bool {
	if q.Subject != nil && (*q.Subject != r.Subject || q.Tenant == nil && r.Tenant != "") {
		return false // a hash may be that of two
	}
	return q.Tenant == nil || *q.Tenant == r.Tenant
}
