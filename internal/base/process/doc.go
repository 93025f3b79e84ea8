// Package process runs programs on this machine as children that leave nothing behind.
//
// Invariants
//
//   - A process leads a group of its own, and when it has ended what is left of the group is killed, before anybody is told.
//   - On Linux it dies with the gateway too, however that ends. As the first process of a container the gateway waits for what its
//     processes have left to it, so that no zombies pile up.
//   - Told to stop it gets SIGTERM, and SIGKILL after Program.KillAfter. Windows has only the latter.
//   - Reading its outputs ends, whoever still holds them.
//   - It sees a short list of environment variables and never those of the gateway.
package process
