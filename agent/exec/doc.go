// Package exec is an agent that is a program on this machine: for each turn it is started, gets what there is to answer as
// one line of JSON on its standard input, and writes its stream, in any dialect, to its standard output. docs/agents.md
// describes it for those who write one.
//
// Invariants
//
//   - Run returns when the process has ended and was waited for, with all of its process group: none is left behind. On
//     Linux the process dies with the gateway too, however that ends.
//   - A process whose turn ends before it does gets SIGTERM, and SIGKILL 5 s later. Windows has only the latter.
//   - Its output is read as fast as the log takes it, and no faster; what it prints beside goes to the log, bounded.
//   - It sees a short list of environment variables and never those of the gateway.
//   - An exit without the dialect's own end fails the turn, with the exit status, and for operators with
//     the last line of standard error.
package exec
