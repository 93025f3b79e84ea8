package cli

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	leat "github.com/leat-dev/leat/clients/go"
)

// usageCmd prints the usage and cost of turns that have ended, by groups. Turns are counted on the day, in UTC, on
// which they ended.
type usageCmd struct {
	operator
	From    string   `help:"First day in UTC, such as 2026-11-01. Default: 30 days ending today." placeholder:"DAY"`
	To      string   `help:"Last day. Default: today." placeholder:"DAY"`
	GroupBy []string `name:"by" help:"Group by day, agent, model, tenant, subject, or several of them; none prints only the total." default:"day" placeholder:"NAME,..."`
	Tenant  string   `help:"Show only this tenant." placeholder:"ID"`
	Subject string   `help:"Show only this subject." placeholder:"ID"`
	JSON    bool     `name:"json" help:"Print JSON."`
}

// Run asks the gateway for the sums, and prints them as JSON or as a table.
func (c *usageCmd) Run(a *app) error {
	groups := c.GroupBy
	// The empty list means no groups, which a flag can't express: an empty flag stands for the default.
	if slices.Equal(groups, []string{"none"}) {
		groups = []string{}
	}
	rep, err := c.client().Usage(a.ctx, leat.UsageQuery{From: c.From, To: c.To, GroupBy: groups, Tenant: c.Tenant, Subject: c.Subject})
	if err != nil {
		return c.explain(err)
	}
	if c.JSON {
		return printIndented(a.stdout, rep)
	}
	return a.usageTable(&rep)
}

// usageTable prints a line for each group and one for the total. FAILED includes interrupted turns, CACHED is the sum
// of tokens that were read from and written to a provider's cache, and UNPRICED counts the turns with reported usage
// but unknown cost.
func (a *app) usageTable(rep *leat.UsageReport) error {
	w := a.table()
	for _, d := range rep.GroupBy {
		fmt.Fprintf(w, "%s\t", strings.ToUpper(d))
	}
	fmt.Fprintln(w, "TURNS\tFAILED\tINPUT\tOUTPUT\tCACHED\tCOST\tUNPRICED")
	line := func(s *leat.UsageSums) {
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%s\t%d\n",
			s.Turns, s.Outcomes["failed"]+s.Outcomes["interrupted"], s.Input, s.Output, s.CacheRead+s.CacheWrite, costs(s.Cost), s.Unpriced)
	}
	for i := range rep.Groups {
		g := &rep.Groups[i]
		// The report has a field for each group, of which only the requested ones are set.
		names := map[string]string{"day": g.Day, "agent": g.Agent, "model": g.Model, "tenant": g.Tenant, "subject": g.Subject}
		for _, d := range rep.GroupBy {
			name := "-"
			if names[d] != "" {
				name = printable(names[d])
			}
			fmt.Fprintf(w, "%s\t", name)
		}
		line(&g.UsageSums)
	}
	if len(rep.GroupBy) > 0 {
		fmt.Fprint(w, "total", strings.Repeat("\t", len(rep.GroupBy)))
	}
	line(&rep.Total)
	return w.Flush()
}

// costs formats amounts in several currencies, such as "1.20 EUR, 3.00 USD", in an order that doesn't change between
// calls. A dash means that the cost is unknown.
func costs(amounts map[string]string) string {
	if len(amounts) == 0 {
		return "-"
	}
	var texts []string
	for currency, amount := range amounts {
		texts = append(texts, amount+" "+currency)
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// printable replaces unprintable characters, with which a name could control the terminal or break the table.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}
