package doctor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Workspace checks that the gateway can write to the folder that it shares with its agents.
func Workspace(dir string) []Finding {
	r := &report{check: "workspace"}
	const fix = "give the gateway's user write permission, or set files.workspace to another folder"
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		r.ok("%s does not exist yet; leat serve creates it", dir)
		for errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir {
			dir = filepath.Dir(dir)
			info, err = os.Stat(dir)
		}
	}
	if err == nil && !info.IsDir() {
		err = errors.New("not a folder")
	}
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
