// Package plugin runs agents and channels that are long-running programs on this machine. A program is started with the gateway, serves
// many turns at the same time over one pair of pipes, and is restarted when it ends. docs/plugins.md describes the protocol: JSON
// objects, one a line, on standard input and output.
//
// The gateway sends "hello" and waits for "ready". For each turn it sends "turn" with the input, and the plugin answers with events and
// the short forms "text" and "callback" until it ends the turn. A channel (see [NewChannel]) exchanges its own lines instead.
//
// Invariants
//
//   - If the process ends, its running turns fail at once with the reason. A turn never moves to another process.
//   - An invalid line that names a turn fails that turn; any other invalid line ends the process. The error names the line number, to
//     the turn's readers and to the plugin.
//   - Lines for a turn that has ended or doesn't run in this process are dropped.
//   - A process that fails is restarted after 0.5 s, 1 s, 2 s and so on up to 30 s. The count starts again after a process that ran for
//     more than a minute.
//   - After Close, the process and its group have ended.
package plugin
