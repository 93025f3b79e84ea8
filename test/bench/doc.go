// Command bench measures Leat and prints one Markdown table: each figure with its raw baseline, which is measured in the same rounds, the
// ratio of the two, and the goal.
//
// Invariants
//
//   - The subject is the real program, built from this tree and started as a separate process, or one package of it if the benchmark says
//     so. Baselines and peers are separate processes too, so the CPU time of the load isn't counted.
//   - A round measures the baseline and Leat one after the other. A ratio is the median of the rounds' ratios, so slow changes of the
//     machine's speed don't affect it.
//   - Loads are limited in size and time, and use the loopback interface only.
//   - If a token is lost, duplicated or reordered, the run fails.
//
// README.md explains each figure.
package main
