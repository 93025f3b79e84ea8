package server

// ownFiles is how many files the gateway itself needs: database, log, listeners.
const ownFiles = 32

// affordable returns how many connections, including the spare ones, a process with that many file descriptors can have. A
// quarter of the descriptors is left for agents: connections, pipes and files. If files is 0, the number of
// descriptors is unknown, and the configured number applies.
func affordable(files uint64, configured int) int {
	if files == 0 || files > 1<<31 {
		return configured
	}
	n := int(files)
	n -= n/4 + ownFiles
	n -= min(max(n/16, minSpare), maxSpare)
	return min(configured, max(n, minSpare))
}
