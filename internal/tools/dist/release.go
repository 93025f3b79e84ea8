package main

import (
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// release is the data that all files of a release share. It comes from the commit alone, never from the clock or the
// machine.
type release struct {
	// version is the tag of the commit, such as v1.2.0, or a pseudo-version. It ends in dirty if the tree was
	// changed.
	version string
	// commit is the whole hash in hexadecimal.
	commit string
	// time is that of the commit. All files in the archives get it.
	time time.Time
}

// name returns the base name of a platform's files, without an extension.
func (r release) name(t target) string { return "leat-" + r.version + "-" + t.os + "-" + t.arch }

// dirty is the suffix of the version of a tree with uncommitted changes.
const dirty = "-dirty"

// modified reports whether the tree had uncommitted changes, in which case the files must not be published.
func (r release) modified() bool { return strings.HasSuffix(r.version, dirty) }

// checkedOut returns the release of the checked out commit. The version is its tag or, without a tag, a
// pseudo-version as Go forms it, such as v0.0.0-20261123061200-0123456789ab. Untracked files count as changes,
// because Go would compile them.
func checkedOut() (release, error) {
	var r release
	commit, err := git("rev-parse", "HEAD")
	if err != nil {
		return r, fmt.Errorf("dist needs a git checkout: %w", err)
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

// git runs a git command and returns its trimmed output. The error has the subcommand and the exit status, but not
// what git printed.
func git(args ...string) (string, error) {
	output, err := exec.Command("git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(output)), nil
}
