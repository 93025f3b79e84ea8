package server

// ownFiles are descriptors for the database, the log, the listeners and what else the gateway itself has open.
const ownFiles = 32

// affordable returns how many connections fit into a process that may have so many files open, next to the spare ones. A quarter is left
// for agents: their connections, the pipes of their processes, and files. 0 files are no limit.
func affordable(files uint64, configured int) int {
	if files == 0 || files > 1<<31 {
		return configured
	}
	n := int(files)
	n -= n/4 + ownFiles
	n -= min(max(n/16, minSpare), maxSpare)
	return min(configured, max(n, minSpare))
}
