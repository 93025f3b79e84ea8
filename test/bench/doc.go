// Command bench measures Leat and prints every figure that its documents quote, each with a baseline of raw sockets or
// a bare file that was measured in the same run.
//
// Rules
//
//   - What is measured is the real program, built from this tree and started as a process of its own, or, where it says
//     so, one package of it. The load comes from this process; CPU is counted by process.
//   - A figure is the median of several runs; what two things have in common they are measured for in the same run.
//   - Loads are bounded in count and time and stay on the loopback.
//   - A run that loses or doubles a byte is an error, not a figure.
//
// README.md says what each figure means and how to read it.
package main
