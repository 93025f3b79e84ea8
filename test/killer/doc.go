// Package killer holds the tests that run the real program and end it, by SIGKILL and by SIGTERM, again and again while
// it works, and those that give it a data folder that it must refuse. It has no code of its own.
//
// What has to hold, whatever the moment:
//
//   - No viewer that comes back with its cursor is reset, sees its position fall, or folds anything but what the log says:
//     so nothing that it has seen is missing.
//   - Every turn has exactly one end. One whose agent can go on, or whose producer comes back within its lease, is
//     completed with its whole text, as decoding offline gives it; any other ends as interrupted with all that was seen.
//   - A command that was acknowledged took effect once, however often it was sent.
//   - What a producer was told to be committed is never asked for again.
//   - An upgrade, where one process follows another, is a pause of a moment: nobody is refused where the listening socket
//     outlives the process, and how long viewers saw nothing is printed.
//
// LEAT_FULL=1 makes the storms long; LEAT_SEED repeats one. A failure prints its seed and what happened when.
package killer
