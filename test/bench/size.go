package main

import "time"

// size is the size of the loads. The documentation quotes figures of full. short is for a quick comparison while developing. tiny
// is for the test, which checks only that every benchmark runs.
type size struct {
	pause time.Duration // between connecting viewers and measuring; the last snapshots are written in this time

	fanoutViewers int
	fanoutRate    float64 // events a second
	fanoutTime    time.Duration

	manyConversations, manyViewers int // viewers of each conversation
	lowConversations               int
	lowRate                        float64 // events a second and conversation

	idleViewers int // measured with this number and with twice as many
	idleTime    time.Duration
	openStreams int // pushed streams without a viewer

	latencyStreams []int
	latencyWarm    time.Duration // not sampled
	latencyTime    time.Duration

	appendStreams int
	appendTime    time.Duration
	appendTurn    int // events in a turn

	stalledViewers int // with this number of viewers, and a fortieth of it
	stalledTime    time.Duration
	mustStall      bool // the tokens exceed the kernel's buffers

	joinEvents int // in the turn when the first viewer joins
	joinTimes  int // joins, one after another

	decodeTime time.Duration // for each format and benchmark

	resumeMissed int // events
	resumeTimes  int
	stormMissed  int
	stormViewers int
}

var (
	// full has the loads of the requirements.
	full = size{
		pause:         time.Second,
		fanoutViewers: 2000, fanoutRate: 20, fanoutTime: 6 * time.Second,
		manyConversations: 200, manyViewers: 10, lowConversations: 10, lowRate: 10,
		idleViewers: 5000, idleTime: 16 * time.Second, openStreams: 500,
		latencyStreams: []int{100, 400, 1000}, latencyWarm: 2 * time.Second, latencyTime: 4 * time.Second,
		appendStreams: 1000, appendTime: 4 * time.Second, appendTurn: 512,
		stalledViewers: 400, stalledTime: 8 * time.Second, mustStall: true,
		joinEvents: 100_000, joinTimes: 60,
		decodeTime:   150 * time.Millisecond,
		resumeMissed: 10_000, resumeTimes: 50, stormMissed: 1000, stormViewers: 2000,
	}
	// short has the same loads for a shorter time, because a smaller load would measure something else: queues only form near the
	// limit of the CPU.
	short = size{
		pause:         500 * time.Millisecond,
		fanoutViewers: 2000, fanoutRate: 20, fanoutTime: 4 * time.Second,
		manyConversations: 200, manyViewers: 10, lowConversations: 10, lowRate: 10,
		idleViewers: 5000, idleTime: 4 * time.Second, openStreams: 500,
		latencyStreams: []int{100, 400, 1000}, latencyWarm: time.Second, latencyTime: 3 * time.Second,
		appendStreams: 1000, appendTime: 2 * time.Second, appendTurn: 512,
		stalledViewers: 400, stalledTime: 8 * time.Second, mustStall: true,
		joinEvents: 100_000, joinTimes: 30,
		decodeTime:   50 * time.Millisecond,
		resumeMissed: 10_000, resumeTimes: 20, stormMissed: 1000, stormViewers: 2000,
	}
	tiny = size{
		pause:         50 * time.Millisecond,
		fanoutViewers: 20, fanoutRate: 100, fanoutTime: 300 * time.Millisecond,
		manyConversations: 4, manyViewers: 5, lowConversations: 2, lowRate: 50,
		idleViewers: 20, idleTime: 200 * time.Millisecond, openStreams: 5,
		latencyStreams: []int{10}, latencyWarm: 100 * time.Millisecond, latencyTime: 400 * time.Millisecond,
		appendStreams: 20, appendTime: 300 * time.Millisecond, appendTurn: 32,
		stalledViewers: 40, stalledTime: 500 * time.Millisecond,
		joinEvents: 2000, joinTimes: 5,
		decodeTime:   time.Millisecond,
		resumeMissed: 1000, resumeTimes: 4, stormMissed: 200, stormViewers: 20,
	}
)
