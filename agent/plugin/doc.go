// Package plugin is an agent that is a program on this machine which stays: it is started with the gateway, answers many
// turns at the same time over one pair of pipes, and is started again when it ends. docs/plugins.md describes its protocol.
//
// Invariants
//
//   - A turn whose process ends before it does fails at once, with how the process ended. No turn moves to another process.
//   - A line that can't be read ends what it belongs to and nothing else: its turn, or, where it names none, the process.
//     The error names the line, to the readers and to the program.
//   - What is said after a turn's end, or for a turn that does not run here, is not seen.
//   - A process that fails is started again after 0.5 s, then 1 s, and so on up to 30 s; one that has lasted for a minute
//     begins anew.
//   - After Close no process is left, nor any of its group.
package plugin
