// Sums of usage by day, user, agent and model.

package usage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
)

// Dimension is a property by which sums are grouped.
type Dimension string

// The dimensions. They are the values of the query parameter "by".
const (
	ByDay     Dimension = "day"
	byAgent   Dimension = "agent"
	byModel   Dimension = "model"
	ByTenant  Dimension = "tenant"
	BySubject Dimension = "subject"
)

// dimensions lists all dimensions.
func dimensions() []Dimension { return []Dimension{ByDay, byAgent, byModel, ByTenant, BySubject} }

const (
	// maxDays limits the days of a query. It covers twice the default retention.
	maxDays = 800
	// maxGroups limits the groups of a report. At the limit it has about 4 MB of JSON.
	maxGroups = 10_000
	// page is the number of rows read at once.
	page = 1000
)

var (
	// ErrQuery says that a query is invalid.
	ErrQuery = errors.New("usage: invalid query")
	// errGroups says that a report would have more than maxGroups groups.
	errGroups = fmt.Errorf("%w: more than %d groups; request fewer days or fewer dimensions", ErrQuery, maxGroups)
)

// Query selects rows and defines how they are grouped.
type Query struct {
	From, To string // first and last day, such as 2026-11-21
	GroupBy  []Dimension
	// Tenant and Subject, if not nil, restrict the rows. A subject without a tenant means a user of the tenant with the empty
	// name.
	Tenant, Subject *string
}

// Check returns an error that wraps ErrQuery if the query is invalid.
func (q *Query) Check() error {
	if _, err := q.days(); err != nil {
		return err
	}
	for i, d := range q.GroupBy {
		if !slices.Contains(dimensions(), d) {
			return fmt.Errorf("%w: by: unknown dimension %q; use day, agent, model, tenant or subject", ErrQuery, d)
		}
		if slices.Contains(q.GroupBy[:i], d) {
			return fmt.Errorf("%w: by: %s is repeated", ErrQuery, d)
		}
	}
	return nil
}

// days returns the days of the query in order.
func (q *Query) days() ([]string, error) {
	from, err := parseDay("from", q.From)
	if err != nil {
		return nil, err
	}
	to, err := parseDay("to", q.To)
	if err != nil {
		return nil, err
	}
	n := int(to.Sub(from)/(24*time.Hour)) + 1
	if n < 1 || n > maxDays {
		return nil, fmt.Errorf("%w: %s to %s is %d days; use 1 to %d", ErrQuery, q.From, q.To, n, maxDays)
	}
	days := make([]string, n)
	for i := range days {
		days[i] = from.AddDate(0, 0, i).Format(dayFormat)
	}
	return days, nil
}

// parseDay parses a day of a query. name is the parameter in which the client sent it.
func parseDay(name, day string) (time.Time, error) {
	t, err := time.Parse(dayFormat, day)
	if err != nil {
		err = fmt.Errorf("%w: %s: invalid day %q; write it as 2026-11-21", ErrQuery, name, day)
	}
	return t, err
}

// groupNames identify a group. Only the dimensions of the query are set.
type groupNames struct {
	Day     string `json:"day,omitempty"`
	Agent   string `json:"agent,omitempty"`
	Model   string `json:"model,omitempty"`
	Tenant  string `json:"tenant,omitempty"`
	Subject string `json:"subject,omitempty"`
}

// Name returns the group's name in one dimension.
func (n *groupNames) Name(d Dimension) string { return *n.of(d) }

// of returns the field of a dimension.
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

// Group is the sum of the rows with the same names.
type Group struct {
	groupNames
	Sums
}

// Sums are totals over turns.
type Sums struct {
	Turns    int64                   `json:"turns"`
	Outcomes map[event.Outcome]int64 `json:"outcomes"`
	Tokens
	// Cost is by currency. Amounts of different currencies are never added.
	Cost map[string]Amount `json:"cost"`
	// Unpriced counts the turns with reported usage but unknown cost.
	Unpriced int64 `json:"unpriced"`
	// Unreported counts the turns without reported usage.
	Unreported int64 `json:"unreported"`
	Duration   int64 `json:"duration"` // milliseconds
}

// add adds the row of one turn. A turn counts as priced, unpriced or unreported, never as two of them.
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

// Report is the result of a query.
type Report struct {
	From    string      `json:"from"`
	To      string      `json:"to"`
	Zone    string      `json:"timezone"` // always UTC
	GroupBy []Dimension `json:"by"`
	Groups  []*Group    `json:"groups"` // sorted by their names, in the order of GroupBy
	Total   Sums        `json:"total"`
}

// Currencies returns the currencies of the report's costs, sorted.
func (r *Report) Currencies() []string {
	return slices.Sorted(maps.Keys(r.Total.Cost))
}

// Sum executes a query. The error wraps ErrQuery if the query is invalid. It reads every row of the selected days.
func (l *Ledger) Sum(ctx context.Context, q Query) (*Report, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	rep := &Report{From: q.From, To: q.To, Zone: "UTC", GroupBy: append([]Dimension{}, q.GroupBy...), Groups: []*Group{}}
	rep.Total.Outcomes, rep.Total.Cost = map[event.Outcome]int64{}, map[string]Amount{}
	groups := map[groupNames]*Group{}
	err := l.eachRow(ctx, &q, func(r *Row) error {
		// Only groups use memory per result, and their number is limited. The rows themselves are streamed.
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

// eachRow calls f with the rows of a query. For a single subject it reads only that subject's keys, day by day.
func (l *Ledger) eachRow(ctx context.Context, q *Query, f func(*Row) error) error {
	if q.Subject == nil {
		return l.scan(ctx, q, Prefix, Prefix+q.From, f)
	}
	days, err := q.days()
	if err != nil {
		return err
	}
	tenant := cmp.Or(q.Tenant, new(string))
	for _, d := range days {
		if err := l.scan(ctx, q, subjectPrefix(d, *tenant, *q.Subject), "", f); err != nil {
			return err
		}
	}
	return nil
}

// scan calls f with the query's rows among the keys with a prefix that follow the key after.
func (l *Ledger) scan(ctx context.Context, q *Query, prefix, after string, f func(*Row) error) error {
	for kv, err := range journal.EachKey(ctx, l.store.KeysAfter, prefix, after, page) {
		if err != nil {
			return fmt.Errorf("usage: %w", err)
		}
		if dayOfKey(kv.Key) > q.To {
			return nil
		}
		if kv.Value == nil {
			continue // damaged; the journal has logged it
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
	return nil
}

// selects checks the tenant and the subject of a row. The key only contains a short hash, which two subjects may share.
func (q *Query) selects(r *Row) bool {
	if q.Subject != nil && (*q.Subject != r.Subject || q.Tenant == nil && r.Tenant != "") {
		return false // another subject with the same hash
	}
	return q.Tenant == nil || *q.Tenant == r.Tenant
}
