// Package cli is the program leat: its commands, flags and output. It is a package so that several programs can be built from it, such
// as one with OpenTelemetry. Package serve contains the gateway that the command serve runs.
//
// Invariants:
//
//   - Results are written to standard output, everything else to standard error. Colours are used on terminals only.
//   - Text from agents and users can't control the terminal: control characters are escaped.
//   - The exit status is 0 on success, 1 for an error, 2 for a wrong command line or configuration, and 3 if decode read a stream that
//     was cut short.
//   - serve ends in order on the first SIGINT or SIGTERM, and at once on the second.
package cli
