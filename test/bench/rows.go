package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// headline are the lines of the first table, the figures that have goals. details are those of the second one.
var headline, details = split(allRows())

// split separates the rows of the first table from those of the second one.
func split(all []row) (first, second []row) {
	for _, r := range all {
		if r.isDetail {
			second = append(second, r)
		} else {
			first = append(first, r)
		}
	}
	return first, second
}

// allRows returns the lines of both tables in the order of their numbers.
func allRows() []row {
	list := unorderedRows()
	slices.SortStableFunc(list, func(a, b row) int { return cmp.Compare(a.order(), b.order()) })
	return list
}

// order returns the number of a row. Rows without one come last.
func (r row) order() int {
	n, err := strconv.Atoi(strings.TrimPrefix(r.number, "P"))
	if err != nil {
		return 1 << 30
	}
	return n
}

func unorderedRows() (list []row) {
	for _, kind := range []string{"SSE", "WebSocket"} {
		most := map[string]float64{"SSE": 3, "WebSocket": 4}[kind]
		list = append(list,
			row{key: "P1 " + kind, number: "P1", what: "CPU of a delivery, 2,000 viewers, 20 events/s, " + kind, unit: "µs", mostRatio: 1.15, frames: "P1 " + kind + " frames"},
			row{key: "P1 " + kind + " frames", number: "P1", what: "frames of a delivery, " + kind, isDetail: true},
			row{key: "P2 " + kind, number: "P2", what: "p99 latency of the same, " + kind, unit: "ms", mostRatio: 1},
			row{key: "P3 " + kind, number: "P3", what: "memory of an idle viewer, RSS of 5,000, " + kind, unit: "KB", most: most},
			row{key: "P3 " + kind + " total", number: "P3", what: "10,000 idle viewers, growth of RSS, " + kind, unit: "MB", most: 40},
			row{key: "P3 " + kind + " woken", number: "P3", what: "their wake-ups for each heartbeat, " + kind, most: 1},
			row{key: "P3 " + kind + " found", number: "P3", what: "memory of an idle viewer before a garbage collection, " + kind, unit: "KB", isDetail: true},
			row{key: "P3 " + kind + " CPU", number: "P3", what: "CPU with 10,000 idle viewers, " + kind, unit: "% of a core", isDetail: true})
	}
	list = append(list, latencyRows("pushed", "pushed")...)
	list = append(list, latencyRows("of an agent", "agent")...)
	list = append(list, []row{
		{key: "P3 stream", number: "P3", what: "memory of an open, silent pushed stream, RSS", unit: "KB", most: 24},
		{key: "P3 stream heap", number: "P3", what: "heap of such a stream after a garbage collection", unit: "KB", isDetail: true},
		{key: "P3 stream stacks", number: "P3", what: "stacks of such a stream", unit: "KB", isDetail: true},
		{key: "P5", number: "P5", what: "durable appends a second, 200 bytes, one an append, 1,000 streams", leastRatio: 0.8},
		{key: "P5 compacted", number: "P5", what: "the same until all is compacted", leastRatio: 0.5},
		{key: "P5 p50", number: "P5", what: "an append, p50", unit: "ms", isDetail: true},
		{key: "P5 p99", number: "P5", what: "an append, p99", unit: "ms", isDetail: true},
		{key: "P6", number: "P6", what: "10,000 missed events, a cursor of its own for each", unit: "ms", most: 1.5},
		{key: "P6 p99", number: "P6", what: "the slowest of these", unit: "ms", isDetail: true},
		{key: "P7", number: "P7", what: "2,000 resumes at once, 1,000 missed events each", unit: "ms", mostRatio: 1.15},
		{key: "P7 CPU", number: "P7", what: "CPU of a resume", unit: "µs", mostRatio: 1.4},
		{key: "P8", number: "P8", what: "memory of a stalled viewer, slope from 10 to 400", unit: "KB", most: 6},
		{key: "P8 beyond", number: "P8", what: "how much of it an idle viewer doesn't take", unit: "KB", isDetail: true},
		{key: "P9 formats", number: "P9", what: "formats that decode a delta in 0.4 µs + 3 ns a byte", least: float64(len(decodeFormats))},
		{key: "P9 allocs", number: "P9", what: "allocations of a delta, the most of all formats", most: 2},
		{key: "P9 state", number: "P9", what: "State(), the slowest of all formats", unit: "µs", most: 0.5},
	}...)
	for _, format := range decodeFormats {
		list = append(list, row{key: "P9 " + format, number: "P9", what: "a delta of " + format, unit: "µs", isDetail: true})
	}
	return append(list, []row{
		{key: "P10 many", number: "P10", what: "CPU of a delivery, 200 × 10 viewers against 1 × 2,000", unit: "times", most: 1.3, frames: "P10 many frames"},
		{key: "P10 low", number: "P10", what: "CPU of an event, 10 conversations × 1 viewer, 10 events/s each", unit: "µs", mostRatio: 2},
		{key: "P10 low durable", number: "P10", what: "the same, against a baseline that syncs each event", unit: "µs", isDetail: true},
		{key: "P10 many CPU", number: "P10", what: "CPU of a delivery, 200 × 10 viewers", unit: "µs", isDetail: true},
		{key: "P10 many frames", number: "P10", what: "frames of a delivery, the lower of both", isDetail: true},
		{key: "P10 many p99", number: "P10", what: "p99 latency, 200 × 10 viewers", unit: "ms", isDetail: true},
		{key: "join", what: "joining a turn of 100,000 events, p50", unit: "ms", isDetail: true},
		{key: "join p99", what: "the slowest of these", unit: "ms", isDetail: true},
	}...)
}

// latencyRows returns the rows of P4 for chunks that arrive in one way.
func latencyRows(way, name string) (list []row) {
	for _, l := range []struct {
		streams int
		ratio   float64
	}{{10, 0}, {100, 2}, {400, 0}, {1000, 1.35}} {
		what := fmt.Sprintf("a chunk %s, %s streams: ", way, thousands(int64(l.streams)))
		key := fmt.Sprintf("P4 %s %d ", name, l.streams)
		list = append(list,
			row{key: key + "CPU", number: "P4", what: what + "CPU", unit: "µs", mostRatio: l.ratio, frames: key + "frames", isDetail: l.ratio == 0},
			row{key: key + "p50", number: "P4", what: what + "p50", unit: "ms", most: 1},
			row{key: key + "p99", number: "P4", what: what + "p99", unit: "ms", most: 8},
			row{key: key + "frames", number: "P4", what: what + "frames of a chunk", isDetail: true})
		if name != "agent" {
			continue
		}
		what = fmt.Sprintf("the same, %s streams, against a relay that syncs each chunk: ", thousands(int64(l.streams)))
		key = fmt.Sprintf("P4 durable %d ", l.streams)
		list = append(list,
			row{key: key + "CPU", number: "P4", what: what + "CPU", unit: "µs", isDetail: true},
			row{key: key + "p50", number: "P4", what: what + "p50", unit: "ms", isDetail: true},
			row{key: key + "p99", number: "P4", what: what + "p99", unit: "ms", isDetail: true})
	}
	return list
}
