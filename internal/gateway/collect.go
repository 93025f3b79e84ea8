package gateway

import "github.com/prometheus/client_golang/prometheus"

// Collector returns the gauges of the queues. Unlike the counters of [Metrics], they are computed when they are collected.
func (g *Gateway) Collector() prometheus.Collector { return collector{g} }

type collector struct{ g *Gateway }

var (
	queuedDesc  = prometheus.NewDesc("leat_turns_queued", "Turns that wait for another turn of their conversation.", nil, nil)
	jobsDesc    = prometheus.NewDesc("leat_commit_queue_jobs", "Changes of conversations that wait to be committed.", nil, nil)
	bytesDesc   = prometheus.NewDesc("leat_commit_queue_bytes", "Bytes of text that wait to be committed.", nil, nil)
	failingDesc = prometheus.NewDesc("leat_conversations_failing", "Conversations whose commits fail now.", nil, nil)
	settleDesc  = prometheus.NewDesc("leat_settle_backlog", "Conversations whose logs wait to be compacted.", nil, nil)
	feedsDesc   = prometheus.NewDesc("leat_feeds_open", "Conversations whose newest messages are in memory for readers.", nil, nil)
)

// Describe implements [prometheus.Collector].
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{queuedDesc, jobsDesc, bytesDesc, failingDesc, settleDesc, feedsDesc} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector]. It locks each open conversation for a moment.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	var queued, jobs, bytes, failing int
	for _, w := range c.g.writers.list() {
		waitingJobs, text, isFailing := w.load()
		jobs, bytes = jobs+waitingJobs, bytes+text
		if isFailing {
			failing++
		}
		queued += w.queued()
	}
	for _, v := range []struct {
		desc *prometheus.Desc
		n    int
	}{{queuedDesc, queued}, {jobsDesc, jobs}, {bytesDesc, bytes}, {failingDesc, failing}, {settleDesc, c.g.compactor.backlog()}, {feedsDesc, c.g.feeds.Len()}} {
		ch <- prometheus.MustNewConstMetric(v.desc, prometheus.GaugeValue, float64(v.n))
	}
}
