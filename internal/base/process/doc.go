// Package process runs programs on this machine as children that leave nothing behind.
//
// Start a program for one task with [Start], or one that exchanges lines for as long as it lives with [StartTalk].
//
// Invariants
//
//   - A process leads its own group. When it has ended, the rest of the group is killed before ExitDone is closed.
//   - On Linux the kernel kills a process when the gateway ends, even by SIGKILL. As the first process of a container, the gateway also
//     reaps the orphans of its processes, so that no zombies accumulate.
//   - A stopped process gets SIGTERM, and SIGKILL after Program.KillAfter. Windows only has the latter.
//   - Reading the outputs of a process ends after the process, even if another process has them open.
//   - A process gets a short list of environment variables, and never those of the gateway.
package process
