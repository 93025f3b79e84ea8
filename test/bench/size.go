package main

import "time"

// size is the size of the loads. The documentation quotes figures of full. short is for a quick comparison while developing. tiny
// is for the test, which checks only that every benchmark runs.
type size struct {
	decodeTime   time.Duration // CPU time for each dialect
	decodeDeltas int           // in one stream

	journalStreams int
	journalTime    time.Duration
	journalEvents  int // in one pipelined append
	journalTurn    int // events in a turn

	latencyStreams int
	latencyRate    int           // tokens a second on each stream
	latencyWarm    time.Duration // not sampled
	latencyTime    time.Duration

	fanoutViewers int
	fanoutRate    int // events a second
	fanoutTime    time.Duration

	joinEvents int // in the turn when the first viewer joins
	joinTimes  int // joins, one after another

	stalledViewers int
	stalledTime    time.Duration
}

var (
	// full has the loads of the requirements: a thousand streams at 50 tokens a second, two thousand viewers, a turn of a hundred
	// thousand events.
	full = size{
		decodeTime: 500 * time.Millisecond, decodeDeltas: 200,
		journalStreams: 1000, journalTime: 8 * time.Second, journalEvents: 16, journalTurn: 512,
		latencyStreams: 1000, latencyRate: 50, latencyWarm: 3 * time.Second, latencyTime: 10 * time.Second,
		fanoutViewers: 2000, fanoutRate: 20, fanoutTime: 10 * time.Second,
		joinEvents: 100_000, joinTimes: 300,
		stalledViewers: 1000, stalledTime: 60 * time.Second,
	}
	// short has the same loads for a shorter time, because a smaller load would measure something else: queues only form near the
	// limit of the CPU.
	short = size{
		decodeTime: 200 * time.Millisecond, decodeDeltas: 200,
		journalStreams: 1000, journalTime: 3 * time.Second, journalEvents: 16, journalTurn: 512,
		latencyStreams: 1000, latencyRate: 50, latencyWarm: 2 * time.Second, latencyTime: 4 * time.Second,
		fanoutViewers: 2000, fanoutRate: 20, fanoutTime: 4 * time.Second,
		joinEvents: 100_000, joinTimes: 100,
		stalledViewers: 1000, stalledTime: 8 * time.Second,
	}
	tiny = size{
		decodeTime: 5 * time.Millisecond, decodeDeltas: 20,
		journalStreams: 20, journalTime: 200 * time.Millisecond, journalEvents: 8, journalTurn: 32,
		latencyStreams: 10, latencyRate: 50, latencyWarm: 100 * time.Millisecond, latencyTime: 500 * time.Millisecond,
		fanoutViewers: 20, fanoutRate: 20, fanoutTime: time.Second,
		joinEvents: 2000, joinTimes: 5,
		stalledViewers: 10, stalledTime: time.Second,
	}
)
