// Command bench measures Leat and prints every figure that the documentation quotes, each with a baseline of raw sockets or a plain
// file that is measured in the same run.
//
// Invariants
//
//   - The subject is the real program, built from this tree and started as a separate process, or one package of it if the benchmark says
//     so. The load is generated in this process, so CPU time can be measured separately.
//   - A figure is the median of several runs. Figures that are compared with each other are measured in the same run.
//   - Loads are limited in size and time, and use the loopback interface only.
//   - If a byte is lost or duplicated, the run fails and prints no figure.
//
// README.md explains each figure.
package main
