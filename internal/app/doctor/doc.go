// Package doctor checks the environment of a gateway and says what to do about problems: the disk, the stored conversations, the
// speech detector, the clock, and the proxies between the gateway and its readers. The checks are independent of each other and can run in any order.
//
// Invariants
//
//   - A check leaves nothing behind, and is safe while a gateway runs.
//   - Every check ends within a limit, whatever the network or the disk does.
//   - A finding says what was found. A warning or failure also says what to do, if that is known.
package doctor
