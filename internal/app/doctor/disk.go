package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/gofrs/flock"
)

const (
	littleSpace = 1 << 30  // bytes, below which somebody should look
	noSpace     = 64 << 20 // bytes, below which a gateway is about to stop
	slowSync    = 20 * time.Millisecond
	syncs       = 20
)

// Disk looks at the folder of a gateway's data: that it can be written, by whom it can be read, how much room it has, how
// long a write takes to be safe, and whether a gateway uses it. lock is the name of the file that a gateway locks. A folder
// that is not there yet is looked for as far up as there is one.
func Disk(dir, lock string) []Finding {
	r := &report{check: "disk"}
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		r.ok("%s does not exist yet; serve makes it", dir)
		for errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir {
			dir = filepath.Dir(dir)
			info, err = os.Stat(dir)
		}
	} else if err == nil && info.IsDir() && runtime.GOOS != "windows" {
		if mode := info.Mode().Perm(); mode&0o077 != 0 {
			r.warn("chmod 700 "+dir, "others on this machine may look into %s (%v): it holds all conversations", dir, mode)
		}
	}
	if err != nil || !info.IsDir() {
		if err == nil {
			err = errors.New("it is no folder")
		}
		r.fail("give serve another folder with --data, or mend this one", "%s: %v", dir, err)
		return r.findings
	}
	r.space(dir)
	r.sync(dir)
	r.lock(filepath.Join(dir, lock))
	return r.findings
}

func (r *report) space(dir string) {
	free, err := Free(dir)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
	case err != nil:
		r.warn("", "%v", err)
	case free < noSpace:
		r.fail("make room: commits fail when it is gone", "%s has %s left", dir, size(free))
	case free < littleSpace:
		r.warn("make room, or move the data", "%s has %s left", dir, size(free))
	default:
		r.ok("%s has %s left", dir, size(free))
	}
}

// sync measures what every commit waits for.
func (r *report) sync(dir string) {
	const fix = "see to it that the user that runs the gateway may write there"
	f, err := os.CreateTemp(dir, "doctor-*")
	if err != nil {
		r.fail(fix, "%s can't be written: %v", dir, err)
		return
	}
	defer os.Remove(f.Name())
	defer f.Close()
	took := make([]time.Duration, 0, syncs)
	for begin := time.Now(); len(took) < syncs && time.Since(begin) < limit; {
		start := time.Now()
		if _, err = f.Write(make([]byte, 4096)); err == nil {
			err = f.Sync()
		}
		if err != nil {
			r.fail(fix, "%s can't be written: %v", dir, err)
			return
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	median, worst := took[len(took)/2], took[len(took)-1]
	message := fmt.Sprintf("a write to %s is safe after %v (median of %d; %v at worst)", dir, round(median), len(took), round(worst))
	if median > slowSync {
		r.warn("readers see text that much later: use a local SSD; sync: normal waits less and may lose the last moments when the power goes", "%s", message)
		return
	}
	r.ok("%s", message)
}

// lock tells whether a gateway uses the folder. It does not make the file, and holds the lock no longer than it has to.
func (r *report) lock(path string) {
	if _, err := os.Stat(path); err != nil {
		return // nobody ever did
	}
	l := flock.New(path, flock.SetFlag(os.O_RDONLY))
	free, err := l.TryRLock()
	switch {
	case err != nil:
		r.warn("", "%s: %v", path, err)
	case free:
		if err := l.Unlock(); err != nil {
			r.warn("", "%s: %v", path, err)
		}
		r.ok("no gateway uses the folder now")
	default:
		r.ok("a gateway uses the folder now")
	}
}

func round(d time.Duration) time.Duration {
	if d > time.Millisecond {
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(time.Microsecond)
}

func size(n int64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
