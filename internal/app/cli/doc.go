// Package cli is the program leat: its commands and flags, and the wiring of the gateway that it serves. It is a package of
// its own so that several mains can be built of it.
//
// Invariants
//
//   - Results go to standard output, everything else to standard error. Colours are for terminals only.
//   - The exit status is 0 where all went well, 1 for an error, 2 where the command line or the configuration is wrong, and
//     3 where decode read a stream that was cut short.
//   - serve ends in order on the first SIGINT or SIGTERM, at once on the second.
package cli
