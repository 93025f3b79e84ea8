// Package fanout sends the batches of feeds to viewers that have no goroutine.
//
// Viewers of one feed that are up to date form groups. When the feed changes, a worker polls it once for each group and writes the same
// frame to all its viewers, with one write each. A viewer whose connection doesn't take all of it leaves its group. As soon as it can take
// more, it polls by itself from its own cursor, like any slow reader, and joins a group again when it is up to date.
//
// The package knows neither sockets nor protocols: an [Sink] takes the frames.
//
// Invariants:
//
//   - A viewer gets each batch from its own cursor, whole and in order. It is in at most one group, and all viewers of a group have the
//     group's cursor.
//   - A job (a group or a viewer) is run by one worker at a time. A wake during a run causes another run.
//   - Workers never wait: what may read the log, or repeat a decision about access, runs in the slow lane, which has separate workers.
//   - A viewer whose access was changed gets nothing before the decision was repeated.
//   - Workers exist only while there is work. End is called once for each viewer, after its last frame.
//   - Locks are taken in this order: hub, group or pool, feed, lane. A feed calls its watcher with its lock held.
package fanout
