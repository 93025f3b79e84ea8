package config

import "github.com/leat-dev/leat/internal/service/quota"

// quotas limit the usage of each user or each tenant: turns that are queued, running or waiting, messages a minute, stored bytes,
// and streams that are open at the same time. 0 means unlimited.
type quotas struct {
	Turns    int  `yaml:"turns"`
	Messages int  `yaml:"messages"`
	Bytes    Size `yaml:"bytes"`
	Viewers  int  `yaml:"viewers"`
}

// Limits returns the quota in the gateway's form.
func (q quotas) Limits() quota.Limits {
	return quota.Limits{Turns: q.Turns, Messages: q.Messages, Bytes: int64(q.Bytes), Viewers: q.Viewers}
}

// check refuses negative numbers. Bytes needs no check, because a [Size] is never negative.
func (q quotas) check(prefix string, bad reporter) {
	for _, l := range []struct {
		key   string
		value int
	}{{"turns", q.Turns}, {"messages", q.Messages}, {"viewers", q.Viewers}} {
		if l.value < 0 {
			bad(prefix+"."+l.key, "%d must not be negative; 0 means unlimited", l.value)
		}
	}
}
