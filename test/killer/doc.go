// Package killer has the tests that run the real program and end it again and again while it works, by SIGKILL and by SIGTERM, and those
// that start it on a data folder that it must refuse.
//
// The tests prove that, whenever the program is ended:
//
//   - A viewer that resumes with its cursor is never reset and its position never falls. Its transcript equals the log, so it has missed
//     no event.
//   - Every turn has exactly one end. If its agent can resume, or its producer reconnects within the lease, it completes with the same
//     text that decoding the stream offline gives. Any other turn ends as interrupted and keeps everything that viewers have seen.
//   - An acknowledged command takes effect once, however often it is sent.
//   - The gateway never requests bytes again whose commit it has acknowledged to a producer.
//   - During an upgrade, no connection is refused if the listening socket outlives the process. The test prints the longest time in
//     which a viewer received no event.
//
// LEAT_FULL=1 makes the storms long, and LEAT_SEED repeats one. A failure prints its seed and a trace of the events.
package killer
