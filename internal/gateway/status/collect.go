package status

import "github.com/prometheus/client_golang/prometheus"

var (
	agentUp   = prometheus.NewDesc("leat_agent_up", "1 if the agent is up or its state is unknown, else 0.", []string{"agent"}, nil)
	channelUp = prometheus.NewDesc("leat_channel_up", "1 if the channel is up or its state is unknown, else 0.", []string{"channel"}, nil)
)

var _ prometheus.Collector = (*Overview)(nil)

// Describe implements [prometheus.Collector].
func (o *Overview) Describe(ch chan<- *prometheus.Desc) {
	ch <- agentUp
	ch <- channelUp
}

// Collect implements [prometheus.Collector]. An agent in an unknown state counts as up, so that an idle agent that can't be
// checked raises no alert. Collecting metrics doesn't count as an operator's visit, so it triggers no health checks.
func (o *Overview) Collect(ch chan<- prometheus.Metric) {
	o.check(nil)
	agents, channels := o.Agents(), o.Channels()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, kind := range []struct {
		desc   *prometheus.Desc
		health []health
	}{{agentUp, list(o.agents, agents)}, {channelUp, list(o.channels, channels)}} {
		for _, h := range kind.health {
			value := 0.
			if h.State == conditionUp || h.State == conditionUnknown {
				value = 1
			}
			ch <- prometheus.MustNewConstMetric(kind.desc, prometheus.GaugeValue, value, h.Name)
		}
	}
}
