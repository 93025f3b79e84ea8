// Package doctor looks at what a gateway stands on and says what is wrong with it: the disk, the clock, and what lies
// between the gateway and its readers.
//
// Invariants
//
//   - A check changes nothing that lasts, and ends: each has a limit in time.
//   - Each finding says what was found, and where it is no good news, what to do.
package doctor
