// Command dist makes a release: the program for every platform, in archives with a bill of materials each, checksums, a
// Homebrew formula and an install script. "make dist" runs it.
//
// Invariants
//
//   - The same commit built by the same Go gives the same bytes, wherever and whenever: no paths, no time but the
//     commit's, no order but the alphabet's.
//   - What a bill of materials lists is read from the program itself, so that it is what was linked, not what go.mod allows.
//   - Nothing is left of an older release: the folder is made anew, and a failed run leaves the old one as it was.
package main
