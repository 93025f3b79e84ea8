package leat

import (
	"context"
	"net/http"
	"net/url"
	"strings"
)

// UsageQuery asks what turns used and cost. All may be empty.
type UsageQuery struct {
	// From and To are days of UTC, both included, such as 2026-11-21. Without To it is today, without From 30 days in all.
	From, To string
	// By lists what the sums are grouped by: day, agent, model, tenant and subject. Nil is by day; one that is empty asks for
	// the total alone.
	GroupBy []string
	// Tenant and Subject select; who holds the token may ask about all, others only about themselves. A subject without a
	// tenant is one of no tenant.
	Tenant, Subject string
}

// UsageReport is what turns used and cost.
type UsageReport struct {
	From     string       `json:"from"`
	To       string       `json:"to"`
	Timezone string       `json:"timezone"` // UTC
	GroupBy  []string     `json:"by"`
	Groups   []UsageGroup `json:"groups"`
	Total    UsageSums    `json:"total"`
}

// UsageGroup is one group of a report. Those of its names are set by which it is grouped.
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
	Outcomes map[string]int64 `json:"outcomes"`
	// Tokens. Those of the cache are not among the input's; those of reasoning are among the output's.
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
	Reasoning  int64 `json:"reasoning"`
	// Cost is by currency, as exact decimal numbers.
	Cost       map[string]string `json:"cost"`
	Unpriced   int64             `json:"unpriced"`   // turns that told their tokens and have no known cost
	Unreported int64             `json:"unreported"` // turns that told nothing
	Duration   int64             `json:"duration"`   // milliseconds
}

// Usage asks what turns used and cost.
func (c *Client) Usage(ctx context.Context, q UsageQuery) (UsageReport, error) {
	v := url.Values{}
	for key, value := range map[string]string{"from": q.From, "to": q.To, "tenant": q.Tenant, "subject": q.Subject} {
		if value != "" {
			v.Set(key, value)
		}
	}
	if q.GroupBy != nil {
		v.Set("by", strings.Join(q.GroupBy, ","))
	}
	var result UsageReport
	err := c.call(ctx, true, http.MethodGet, "/api/usage?"+v.Encode(), nil, nil, &result)
	return result, err
}
