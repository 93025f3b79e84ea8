package main

// rows are the lines of the printed table, with the goals of the project.
var rows = []row{
	{key: "P1 SSE", number: "P1", what: "CPU of a delivery, 2,000 viewers, 20 events/s, SSE", unit: "µs", mostRatio: 1.15},
	{key: "P1 WebSocket", number: "P1", what: "the same by WebSocket", unit: "µs", mostRatio: 1.15},
	{key: "P1 SSE frames", number: "P1", what: "frames of a delivery, SSE: below 1 tokens were merged"},
	{key: "P1 WebSocket frames", number: "P1", what: "frames of a delivery, WebSocket"},
	{key: "P2 SSE", number: "P2", what: "p99 latency of the same, SSE", unit: "ms", mostRatio: 1},
	{key: "P2 WebSocket", number: "P2", what: "p99 latency of the same, WebSocket", unit: "ms", mostRatio: 1},
	{key: "P3 SSE", number: "P3", what: "memory of an idle viewer, RSS of 5,000, SSE", unit: "KB", most: 3},
	{key: "P3 WebSocket", number: "P3", what: "memory of an idle viewer, RSS of 5,000, WebSocket", unit: "KB", most: 4},
	{key: "P3 SSE found", number: "P3", what: "the same before a garbage collection, SSE", unit: "KB"},
	{key: "P3 WebSocket found", number: "P3", what: "the same before a garbage collection, WebSocket", unit: "KB"},
	{key: "P3 SSE total", number: "P3", what: "10,000 idle viewers, growth of RSS, SSE", unit: "MB", most: 40},
	{key: "P3 WebSocket total", number: "P3", what: "10,000 idle viewers, growth of RSS, WebSocket", unit: "MB", most: 40},
	{key: "P3 SSE woken", number: "P3", what: "their wake-ups for each heartbeat, SSE", most: 1},
	{key: "P3 WebSocket woken", number: "P3", what: "their wake-ups for each heartbeat, WebSocket", most: 1},
	{key: "P3 SSE CPU", number: "P3", what: "CPU while idle, SSE", unit: "% of a core"},
	{key: "P3 WebSocket CPU", number: "P3", what: "CPU while idle, WebSocket", unit: "% of a core"},
	{key: "P6", number: "P6", what: "10,000 missed events, a cursor nobody shares", unit: "ms", most: 1.5},
	{key: "P6 p99", number: "P6", what: "the slowest of these", unit: "ms"},
	{key: "P7", number: "P7", what: "2,000 resumes at once, 1,000 events missed, until all have them", unit: "ms", mostRatio: 1.15},
	{key: "P7 CPU", number: "P7", what: "CPU of a resume", unit: "µs", mostRatio: 1.4},
	{key: "P10 many", number: "P10", what: "CPU of a delivery, 200 conversations × 10 viewers against 1 × 2,000", unit: "times", most: 1.3},
	{key: "P10 many CPU", number: "P10", what: "the delivery with 200 × 10", unit: "µs"},
	{key: "P10 many p99", number: "P10", what: "p99 latency with 200 × 10", unit: "ms"},
	{key: "P10 low", number: "P10", what: "CPU of an event at 100 events/s in 10 conversations with a viewer each", unit: "µs", mostRatio: 2},
}
