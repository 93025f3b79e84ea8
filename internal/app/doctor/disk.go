// The check of the data folder: its space, its lock, and how long a sync takes.

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
	littleSpace = 1 << 30               // bytes of free space below which Disk warns
	noSpace     = 64 << 20              // bytes of free space below which Disk fails
	slowSync    = 20 * time.Millisecond // median duration of a durable write above which Disk warns
	syncs       = 20                    // writes that are measured
)

// Disk checks the data folder of a gateway: permissions, free space, the duration of a durable write, and whether a
// gateway is using it. lock is the name of the file that a gateway locks. If the folder doesn't exist yet, Disk
// checks its closest existing parent.
//
// The permissions are not checked on Windows, whose access lists the mode doesn't show. Of a parent they don't matter
// either: leat serve creates the folder for its user only.
func Disk(dir, lock string) []Finding {
	r := &report{check: "disk"}
	existing, mode, err := r.folder(dir)
	if err != nil {
		r.fail("choose another folder with --data, or repair this one", "%s: %v", existing, err)
		return r.findings
	}
	if existing == dir && runtime.GOOS != "windows" && mode&0o077 != 0 {
		r.warn("chmod 700 "+dir, "other users of this machine can read %s (%v), which contains all conversations", dir, mode)
	}
	r.space(existing)
	r.sync(existing)
	r.lock(filepath.Join(existing, lock))
	return r.findings
}

// folder returns the folder dir with its permissions. If it does not exist yet, folder reports that and returns its closest existing
// parent, on whose disk leat serve will create it.
func (r *report) folder(dir string) (existing string, mode fs.FileMode, err error) {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		r.ok("%s does not exist yet; leat serve creates it", dir)
	}
	for errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir {
		dir = filepath.Dir(dir)
		info, err = os.Stat(dir)
	}
	switch {
	case err != nil:
		return dir, 0, err
	case !info.IsDir():
		return dir, 0, errors.New("not a folder")
	}
	return dir, info.Mode().Perm(), nil
}

// space reports the free space of the disk. It adds no finding on systems that don't report the free space.
func (r *report) space(dir string) {
	free, err := Free(dir)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
	case err != nil:
		r.warn("", "%v", err)
	case free < noSpace:
		r.fail("free up space: without it the gateway can't store messages", "%s has %s free", dir, size(free))
	case free < littleSpace:
		r.warn("free up space, or move the data", "%s has %s free", dir, size(free))
	default:
		r.ok("%s has %s free", dir, size(free))
	}
}

// sync measures the durable write that every commit waits for: 4 KiB and a sync, in a temporary file in the folder.
// The median counts, because single writes are slow on every disk. A disk that is very slow is measured with fewer
// writes, so that the check ends in time.
func (r *report) sync(dir string) {
	const fix = "give the gateway's user write permission"
	f, err := os.CreateTemp(dir, "doctor-*")
	if err != nil {
		r.fail(fix, "%s is not writable: %v", dir, err)
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
			r.fail(fix, "%s is not writable: %v", dir, err)
			return
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	median, worst := took[len(took)/2], took[len(took)-1]
	message := fmt.Sprintf("a durable write to %s takes %v (median of %d; at most %v)", dir, round(median), len(took), round(worst))
	if median > slowSync {
		r.warn("text reaches readers later by this time: use a local SSD; with sync: normal the gateway doesn't wait, but may lose the last moments in a power failure", "%s", message)
		return
	}
	r.ok("%s", message)
}

// lock checks whether a gateway is using the folder, by trying to take a shared lock, which fails while a gateway has
// the exclusive one. It must not create the lock file, and releases the lock at once, so that a gateway that starts
// at this moment doesn't fail.
func (r *report) lock(path string) {
	if _, err := os.Stat(path); err != nil {
		return // no gateway has ever used the folder
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
		r.ok("no gateway is using the folder")
	default:
		r.ok("a gateway is using the folder")
	}
}

// round rounds a duration for people: microseconds below a millisecond, else tenths of milliseconds.
func round(d time.Duration) time.Duration {
	if d > time.Millisecond {
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(time.Microsecond)
}

// size formats a number of bytes in GiB or MiB.
func size(n int64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// Workspace checks that the gateway can write to the folder that it shares with its agents. Files of doctor begin
// with a dot, which agents usually skip, and are removed again.
func Workspace(dir string) []Finding {
	r := &report{check: "workspace"}
	const fix = "give the gateway's user write permission, or set files.workspace to another folder"
	dir, _, err := r.folder(dir)
	if err != nil {
		r.fail(fix, "%s: %v", dir, err)
		return r.findings
	}
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		r.fail(fix, "%s is not writable: %v", dir, err)
		return r.findings
	}
	_ = f.Close() // an error doesn't matter, because nothing was written
	if err := os.Remove(f.Name()); err != nil {
		r.warn("", "%v", err)
	}
	r.ok("%s is writable", dir)
	r.space(dir)
	return r.findings
}
