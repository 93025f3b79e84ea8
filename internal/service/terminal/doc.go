// Package terminal runs commands of a shell and tells what they print while they run, as events of one JSON shape.
//
// Invariants
//
//   - The first event of a run is start, or error where there is no process. The last is exit, timeout or error, and comes when
//     no process of the run is left: its process group was killed, and on Linux what has left the group too, which is known by
//     its descent or by a mark in its environment.
//   - A command is read no faster than its events are taken, and one stream of it makes 50 frames of 32 KiB a second at most:
//     what prints more waits, as at a terminal that is slow. Memory is bounded, however much it prints.
//   - Output is UTF-8: a character is never cut in two, and what is none is U+FFFD.
//   - A command sees a short list of environment variables and never those of the gateway. Its input is empty.
//   - Where the gateway is killed, the next one of its data folder ends on Linux what commands have left: Sweep.
//   - Close ends all runs and returns when nothing of them is left.
package terminal
