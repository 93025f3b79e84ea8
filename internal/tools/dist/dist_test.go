package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

var tried = release{version: "v1.2.0", commit: strings.Repeat("0123456789", 4), time: time.Date(2026, 1, 2, 3, 4, 6, 0, time.FixedZone("", 3600))}

// An archive of the same files has the same bytes, independent of their order and of the time zone.
func TestArchive(t *testing.T) {
	for _, tt := range targets {
		files := func() []file {
			return []file{{"README.md", 0o644, []byte("read me")}, {tt.program(), 0o755, bytes.Repeat([]byte("program"), 1000)}}
		}
		ext, a, err := archive(tt, "folder", tried.time, files())
		if err != nil {
			t.Fatal(err)
		}
		turned := files()
		slices.Reverse(turned)
		_, b, err := archive(tt, "folder", tried.time.UTC().Add(time.Millisecond), turned)
		if err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: the order of the files changes the bytes (%v)", tt, err)
		}
		names := listing(t, ext, a)
		if want := "folder/README.md folder/" + tt.program(); names != want || (ext == ".zip") != (tt.os == "windows") {
			t.Errorf("%s: %s contains %s, want %s", tt, ext, names, want)
		}
	}
}

func listing(t *testing.T, ext string, b []byte) string {
	t.Helper()
	var names []string
	if ext == ".zip" {
		z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range z.File {
			names = append(names, f.Name)
			if !f.Modified.Equal(tried.time) {
				t.Errorf("the time of %s is %v", f.Name, f.Modified)
			}
		}
		return strings.Join(names, " ")
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if !z.ModTime.IsZero() || z.Name != "" {
		t.Errorf("the gzip header has %q, %v", z.Name, z.ModTime)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return strings.Join(names, " ")
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		program := strings.HasSuffix(h.Name, "/leat")
		if !h.ModTime.Equal(tried.time) || h.Uid != 0 || h.Uname != "" || (h.Mode == 0o755) != program {
			t.Errorf("%s: %+v", h.Name, h)
		}
	}
}

// A bill of materials has the fields that CycloneDX 1.6 requires, and lists every module that the test program was linked from.
func TestBill(t *testing.T) {
	info, ok := debug.ReadBuildInfo()
	if !ok || len(info.Deps) == 0 {
		t.Skip("SKIPPED: the test binary has no build information; build it with modules")
	}
	info.Deps = append(info.Deps, &debug.Module{Path: "example.com/forked", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/Fork", Version: "v1.0.1+incompatible", Sum: "h1:x="}})
	b, err := json.Marshal(billOf(tried, targets[0], info, []byte("program")))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		BomFormat, SpecVersion, SerialNumber string
		Version                              int
		Metadata                             struct {
			Timestamp time.Time
			Component anyComponent
		}
		Components   []anyComponent
		Dependencies []struct {
			Ref       string
			DependsOn []string
		}
	}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if got.BomFormat != "CycloneDX" || got.SpecVersion != "1.6" || got.Version < 1 || !got.Metadata.Timestamp.Equal(tried.time) ||
		!regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`).MatchString(got.SerialNumber) {
		t.Errorf("head: %s", b[:400])
	}
	refs := map[string]bool{}
	for _, c := range append(got.Components, got.Metadata.Component) {
		if c.Name == "" || c.Version == "" || (c.Type != "library" && c.Type != "application") || !regexp.MustCompile(`^pkg:golang/[a-z0-9A-Z./_~-]+@[a-z0-9A-Z.%_~-]+$`).MatchString(c.PURL) {
			t.Errorf("component %+v", c)
		}
		if c.Ref == "" || refs[c.Ref] {
			t.Errorf("ref %q is empty or a duplicate", c.Ref)
		}
		refs[c.Ref] = true
	}
	if h := got.Metadata.Component.Hashes; len(h) != 1 || h[0].Alg != "SHA-256" || !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(h[0].Content) {
		t.Errorf("hashes %+v", h)
	}
	if len(got.Dependencies) != 1 || got.Dependencies[0].Ref != got.Metadata.Component.Ref || len(got.Dependencies[0].DependsOn) != len(got.Components) {
		t.Fatalf("dependencies %+v", got.Dependencies)
	}
	for _, r := range got.Dependencies[0].DependsOn {
		if !refs[r] {
			t.Errorf("the program depends on %s, which is not a component", r)
		}
	}
	if len(got.Components) != len(info.Deps)+1 {
		t.Errorf("%d components of %d modules and the standard library", len(got.Components), len(info.Deps))
	}
	for _, want := range []string{"pkg:golang/std@", "pkg:golang/example.com/Fork@v1.0.1%2Bincompatible", "pkg:golang/github.com/google/uuid@v"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s is missing", want)
		}
	}
	again, err := json.Marshal(billOf(tried, targets[0], info, []byte("program")))
	if err != nil || !bytes.Equal(b, again) {
		t.Error("a second bill of the same program differs")
	}
	other, err := json.Marshal(billOf(tried, targets[0], info, []byte("another")))
	if err != nil || strings.Contains(string(other), got.SerialNumber) {
		t.Error("another program has the same serial number")
	}
}

type anyComponent struct {
	Type, Name, Version, PURL string
	Ref                       string `json:"bom-ref"`
	Hashes                    []struct{ Alg, Content string }
}

func TestFormula(t *testing.T) {
	var sums []checksum
	for i, tt := range targets {
		ext := ".tar.gz"
		if tt.os == "windows" {
			ext = ".zip"
		}
		sums = append(sums, checksum{tried.name(tt) + ext, strings.Repeat(string(rune('a'+i)), 64)})
	}
	b, err := formulaOf(tried, sums)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for i, tt := range targets {
		block := `url "` + downloads + "/v1.2.0/" + tried.name(tt) + `.tar.gz"` + "\n      sha256 \"" + strings.Repeat(string(rune('a'+i)), 64) + `"`
		if strings.Contains(text, block) != (tt.os != "windows") {
			t.Errorf("%s: %s\nin\n%s", tt, block, text)
		}
	}
	if !strings.Contains(text, `version "1.2.0"`) || strings.Contains(text, "{{") || strings.Contains(text, "<no value>") {
		t.Error(text)
	}
	if ruby, err := exec.LookPath("ruby"); err == nil {
		cmd := exec.CommandContext(t.Context(), ruby, "-c")
		cmd.Stdin = bytes.NewReader(b)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
}

func TestChoose(t *testing.T) {
	if all, err := choose(""); err != nil || len(all) != 6 {
		t.Error(all, err)
	}
	if two, err := choose("linux/amd64, windows/arm64"); err != nil || len(two) != 2 || two[1].program() != "leat.exe" {
		t.Error(two, err)
	}
	if _, err := choose("plan9/amd64"); err == nil || !strings.Contains(err.Error(), "linux/arm64") {
		t.Error(err)
	}
}

// Releases that are built from two clones of a commit, in different folders, are equal byte by byte.
func TestFullReproducible(t *testing.T) {
	if os.Getenv("LEAT_FULL") == "" {
		t.Skip("SKIPPED: the test builds the program twice; set LEAT_FULL=1 to run it")
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	var sums []string
	for _, name := range []string{"one", "another place"} {
		dir := filepath.Join(t.TempDir(), name)
		command(t, root, "git", "clone", "-q", "--no-hardlinks", root, dir)
		command(t, dir, "go", "run", "./internal/tools/dist", "-targets", "linux/amd64")
		b, err := os.ReadFile(filepath.Join(dir, "dist", sumsFile))
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, string(b))
	}
	if sums[0] != sums[1] || strings.Contains(sums[0], dirty) || strings.Count(sums[0], "\n") != 4 {
		t.Errorf("the first\n%sthe second\n%s", sums[0], sums[1])
	}
}

func command(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}
