// Package exec is an agent kind for programs on this machine. For each turn it starts the program, writes the input as one line of JSON to
// its standard input, and reads its stream, in any dialect, from its standard output. docs/agents.md describes the protocol for authors
// of such programs.
//
// Invariants
//
//   - Run returns after the process and all others of its process group have ended. On Linux the kernel kills the process if the gateway
//     dies, even if that is killed.
//   - If the turn ends before the process, the process gets SIGTERM, and SIGKILL 5 s later. On Windows it is killed at once.
//   - Output is read only as fast as it can be stored, so a fast program blocks on its output. Standard error goes to the gateway's log, with
//     limits on its rate and size.
//   - The program gets a short list of environment variables, and others only if they are configured by name. So it doesn't see the
//     gateway's secrets.
//   - If the process exits before the dialect's end of the turn, the turn fails with the exit status. Operators also see the last line of
//     standard error.
package exec
