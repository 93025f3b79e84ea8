package main

import (
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// release is what all files of a release share.
type release struct {
	version string // such as v1.2.0
	commit  string
	time    time.Time // of the commit; what every file in an archive says
}

// name is what the files of a target are called.
func (r release) name(t target) string { return "leat-" + r.version + "-" + t.os + "-" + t.arch }

// dirty ends the version of a tree that has changes.
const dirty = "-dirty"

func (r release) modified() bool { return strings.HasSuffix(r.version, dirty) }

// checkedOut asks git what is checked out. A commit with a tag is that version; any other has one as Go makes them.
func checkedOut() (release, error) {
	var r release
	commit, err := git("rev-parse", "HEAD")
	if err != nil {
		return r, fmt.Errorf("releases are made in a checkout: %w", err)
	}
	at, err := git("log", "-1", "--format=%cI")
	if err != nil {
		return r, err
	}
	r.commit = commit
	if r.time, err = time.Parse(time.RFC3339, at); err != nil {
		return r, fmt.Errorf("time of the commit: %w", err)
	}
	changed, err := git("status", "--porcelain")
	if err != nil {
		return r, err
	}
	if r.version, err = git("describe", "--tags", "--exact-match", "--match", "v[0-9]*", "HEAD"); err != nil {
		r.version = "v0.0.0-" + r.time.UTC().Format("20060102150405") + "-" + commit[:12]
	}
	if changed != "" {
		r.version += dirty
	}
	return r, nil
}

func git(args ...string) (string, error) {
	output, err := exec.Command("git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(output)), nil
}
