// Command leat is the gateway and the tools around it; "leat --help" lists them.
//
// Invariants
//
//   - Results go to standard output, everything else to standard error. Colours are for terminals only.
//   - The exit status is 0 where all went well, 1 for an error, 2 where the command line or the configuration is wrong, and
//     3 where decode read a stream that was cut short.
//   - serve ends in order on the first SIGINT or SIGTERM, at once on the second.
package main
