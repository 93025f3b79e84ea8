package doctor

import "os"

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
