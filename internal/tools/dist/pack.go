package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

// downloads is the address of the releases. The folder below it is named by the version, as GitHub does.
const downloads = "https://github.com/leat-dev/leat/releases/download"

const (
	// The names of files that have no version in them: documentation links to them in the latest release. sumsFile
	// has the checksums of all other files, in the format of sha256sum -c.
	sumsFile = "SHA256SUMS"
	// formulaFile is the Homebrew formula for macOS and Linux.
	formulaFile = "leat.rb"
	// installFile downloads the archive for the machine and verifies its checksum before it installs the program.
	installFile = "install.sh"
)

// pack writes the archive of one target, and next to it the bill of materials, which is made from the build
// information in the compiled program. The program is the only executable in the archive. docs are the same for all
// targets and aren't changed.
func pack(dir string, r release, t target, binary string, docs []file) error {
	b, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	files := append([]file{{t.program(), 0o755, b}}, docs...)
	name := r.name(t)
	extension, packed, err := archive(t, name, r.time, files)
	if err != nil {
		return err
	}
	if err := write(dir, name+extension, packed, 0o644); err != nil {
		return err
	}
	info, err := buildinfo.Read(bytes.NewReader(b))
	if err != nil {
		return err
	}
	materials, err := json.MarshalIndent(billOf(r, t, info, b), "", "  ")
	if err != nil {
		return err
	}
	return write(dir, name+".cdx.json", append(materials, '\n'), 0o644)
}

// detectorDir is where "make vad" puts the speech detector.
const detectorDir = "web/vad/dist"

// packDetector writes the archive of the speech detector, which is the same for all platforms; targets[0] only
// selects the format, tar.gz. Without the files it writes none: they come from npm, and not every build of a program
// needs them.
func packDetector(dir string, r release) error {
	entries, err := os.ReadDir(detectorDir)
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Println("without the speech detector; make vad builds it")
		return nil
	}
	if err != nil {
		return err
	}
	var files []file
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(detectorDir, e.Name()))
		if err != nil {
			return err
		}
		files = append(files, file{e.Name(), 0o644, b})
	}
	name := "leat-vad-" + r.version
	extension, packed, err := archive(targets[0], name, r.time, files)
	if err != nil {
		return err
	}
	return write(dir, name+extension, packed, 0o644)
}

//go:embed install.sh
var installScript string

//go:embed leat.rb
var formula string

// finish writes the files that depend on all archives. The install script and the formula come before the checksums,
// which cover them; the formula itself contains the checksums of the archives. So the checksums are computed twice.
func finish(dir string, r release) error {
	install := strings.ReplaceAll(installScript, "@VERSION@", r.version)
	install = strings.ReplaceAll(install, "@DOWNLOADS@", downloads)
	if err := write(dir, installFile, []byte(install), 0o755); err != nil {
		return err
	}
	sums, err := sum(dir)
	if err != nil {
		return err
	}
	text, err := formulaOf(r, sums)
	if err != nil {
		return err
	}
	if err := write(dir, formulaFile, text, 0o644); err != nil {
		return err
	}
	if sums, err = sum(dir); err != nil {
		return err
	}
	var b strings.Builder
	for _, s := range sums {
		fmt.Fprintf(&b, "%s  %s\n", s.hex, s.name)
	}
	return write(dir, sumsFile, []byte(b.String()), 0o644)
}

// checksum is the SHA-256 of a file in hexadecimal, in the form of sha256sum: lower case.
type checksum struct{ name, hex string }

// sum returns the checksums of all files in dir, sorted by name.
func sum(dir string) ([]checksum, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var sums []checksum
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		s := sha256.Sum256(b)
		sums = append(sums, checksum{f.Name(), hex.EncodeToString(s[:])})
	}
	return sums, nil
}

// formulaOf fills in the Homebrew formula. A platform that wasn't built is left out, so that a formula for trials can
// be made from a partial build. Homebrew has no Windows.
func formulaOf(r release, sums []checksum) ([]byte, error) {
	data := map[string]any{"Version": strings.TrimPrefix(r.version, "v"), "Modified": r.modified()}
	for _, t := range targets {
		for _, s := range sums {
			if s.name == r.name(t)+".tar.gz" {
				data[t.os+"_"+t.arch] = map[string]string{"URL": downloads + "/" + r.version + "/" + s.name, "Sum": s.hex}
			}
		}
	}
	tmpl, err := template.New("formula").Option("missingkey=zero").Parse(formula)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = tmpl.Execute(&b, data)
	return b.Bytes(), err
}

// write creates a file with exactly that mode, regardless of the umask.
func write(dir, name string, data []byte, mode os.FileMode) error {
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}
