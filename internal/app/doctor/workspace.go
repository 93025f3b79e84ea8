package doctor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Workspace looks at the folder that a gateway shares with its agents: that the gateway can write there.
func Workspace(dir string) []Finding {
	r := &report{check: "workspace"}
	const fix = "see to it that the user that runs the gateway may write there, or give files.workspace another folder"
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		r.ok("%s does not exist yet; serve makes it", dir)
		for errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir {
			dir = filepath.Dir(dir)
			info, err = os.Stat(dir)
		}
	}
	if err == nil && !info.IsDir() {
		err = errors.New("it is no folder")
	}
	if err != nil {
		r.fail(fix, "%s: %v", dir, err)
		return r.findings
	}
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		r.fail(fix, "%s can't be written: %v", dir, err)
		return r.findings
	}
	_ = f.Close() // nothing was written
	if err := os.Remove(f.Name()); err != nil {
		r.warn("", "%v", err)
	}
	r.ok("%s can be written", dir)
	r.space(dir)
	return r.findings
}
