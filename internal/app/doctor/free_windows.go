package doctor

import (
	"fmt"

	"golang.org/x/sys/windows"
)

// Free returns how many bytes the folder's disk has free for this user. Quotas of the user are taken into account.
func Free(dir string) (int64, error) {
	p, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(p, &free, nil, nil); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	return int64(free), nil
}
