//go:build !linux

package terminal

// mark is the environment variable that names the run, folderMark the one that names the data folder.
const mark, folderMark = "LEAT_RUN", "LEAT_RUN_OF"

// processInfo is a process. None is known here by more than its group.
type processInfo struct{}

func descendantsOf(int) []processInfo { return nil }

// sweep has nothing to do: what is known of a run is its group, which is gone.
func sweep(string, []processInfo, map[int]bool) error { return nil }

// folder has no use here.
func folder(string) (string, error) { return "", nil }

// Sweep ends what commands have left behind of an earlier gateway with this data folder, on Linux. Here nothing is known of them.
func Sweep(string) error { return nil }
