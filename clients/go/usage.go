package leat

import (
	"context"
	"net/http"
	"strings"
)

// UsageQuery selects turns for [Client.Usage]. All fields are optional.
type UsageQuery struct {
	// From and To are UTC days such as 2026-11-21, both included. To defaults to today, and From to 30 days in total.
	From, To string
	// GroupBy lists the properties to group by: day, agent, model, tenant and subject. Nil means by day; an empty non-nil slice means only the
	// total.
	GroupBy []string
	// Tenant and Subject restrict the report to a user. Only the holder of the token may query other users. A Subject without a Tenant
	// is a user without a tenant.
	Tenant, Subject string
}

// UsageReport is the usage and cost of the selected turns.
type UsageReport struct {
	From     string       `json:"from"`
	To       string       `json:"to"`
	Timezone string       `json:"timezone"` // UTC
	GroupBy  []string     `json:"by"`
	Groups   []UsageGroup `json:"groups"`
	Total    UsageSums    `json:"total"`
}

// UsageGroup is one group of a report. Only the properties in UsageQuery.GroupBy are set; the others are empty.
type UsageGroup struct {
	Day     string `json:"day,omitempty"`
	Agent   string `json:"agent,omitempty"`
	Model   string `json:"model,omitempty"`
	Tenant  string `json:"tenant,omitempty"`
	Subject string `json:"subject,omitempty"`
	UsageSums
}

// UsageSums are sums over turns that have ended.
type UsageSums struct {
	Turns    int64            `json:"turns"`
	Outcomes map[string]int64 `json:"outcomes"` // turns by outcome, such as completed
	// Token counts. Input excludes cached tokens; Output includes reasoning tokens.
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
	Reasoning  int64 `json:"reasoning"` // included in Output
	// Cost maps currencies to exact decimal numbers.
	Cost       map[string]string `json:"cost"`
	Unpriced   int64             `json:"unpriced"`   // turns with token counts but without a known price
	Unreported int64             `json:"unreported"` // turns whose agent reported no usage
	Duration   int64             `json:"duration"`   // milliseconds
}

// Usage returns the usage and cost of turns that have ended. A running turn isn't included, even if its agent has already reported tokens.
func (c *Client) Usage(ctx context.Context, q UsageQuery) (UsageReport, error) {
	v := query(map[string]string{"from": q.From, "to": q.To, "tenant": q.Tenant, "subject": q.Subject})
	if q.GroupBy != nil {
		v.Set("by", strings.Join(q.GroupBy, ","))
	}
	var result UsageReport
	err := c.call(ctx, true, http.MethodGet, "/api/usage?"+v.Encode(), nil, nil, &result)
	return result, err
}
