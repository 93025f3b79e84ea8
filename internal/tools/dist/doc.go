// Command dist builds a release: the program for every platform in archives, a bill of materials for each, the
// speech detector if "make vad" has built it, checksums, a Homebrew formula and an install script. "make dist" runs it in the root of the tree.
//
// It compiles and packs one platform after another, then writes the files that depend on the archives (install script, formula,
// checksums), and finally replaces the output folder.
//
// Invariants
//
//   - The same commit, built by the same Go version, gives the same bytes on every machine: paths are trimmed, every time is the
//     commit's, and files are sorted by name.
//   - The bill of materials is read from the compiled program, so it lists what was linked rather than what go.mod allows.
//   - The output folder never mixes two releases. It is replaced as a whole, and a failed run leaves the previous one unchanged.
package main
