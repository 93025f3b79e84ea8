//go:build !linux

package terminal

// mark is the environment variable with the run's id, folderMark the one with the id of the data folder.
const mark, folderMark = "LEAT_RUN", "LEAT_RUN_OF"

// processInfo isn't used: this system has no /proc, so only process groups are known.
type processInfo struct{}

func descendantsOf(int) []processInfo { return nil }

// sweep does nothing, because processes that left their group can't be found here.
func sweep(string, []processInfo, map[int]bool) error { return nil }

// folder returns an empty id, which disables the mark.
func folder(string) (string, error) { return "", nil }

// Sweep does nothing, because processes of an earlier gateway can't be found here. See sweep_linux.go.
func Sweep(string) error { return nil }
