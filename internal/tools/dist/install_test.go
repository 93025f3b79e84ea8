package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Scripts that replace leat and uname.
const (
	stub  = "#!/bin/sh\necho \"leat stub $*\"\n"
	uname = "#!/bin/sh\n[ \"$1\" = -s ] && echo \"${FAKE_OS:-Linux}\" || echo \"${FAKE_ARCH:-x86_64}\"\n"
)

// shop is a folder with a release and a server for it, as a mirror has.
type shop struct {
	dir, url string
	path     string // PATH with a uname that prints the platform of the test
}

func newShop(t *testing.T) shop {
	t.Helper()
	for _, program := range []string{"sh", "tar", "awk", "sha256sum", "mktemp"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("SKIPPED: %s is not installed; it is needed to test install.sh", program)
		}
	}
	_, noCurl := exec.LookPath("curl")
	if _, err := exec.LookPath("wget"); noCurl != nil && err != nil {
		t.Skip("SKIPPED: neither curl nor wget is installed; install one to test install.sh (apt-get install curl)")
	}
	s := shop{dir: t.TempDir()}
	for _, tt := range []target{{"linux", "amd64"}, {"darwin", "arm64"}} {
		_, b, err := archive(tt, tried.name(tt), tried.time, []file{{"leat", 0o755, []byte(stub)}, {"README.md", 0o644, nil}})
		if err != nil {
			t.Fatal(err)
		}
		if err := write(s.dir, tried.name(tt)+".tar.gz", b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := finish(s.dir, tried); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(s.dir)))
	t.Cleanup(server.Close)
	bin := t.TempDir()
	if err := write(bin, "uname", []byte(uname), 0o755); err != nil {
		t.Fatal(err)
	}
	s.url, s.path = server.URL, bin+string(os.PathListSeparator)+os.Getenv("PATH")
	return s
}

// install runs the generated script from standard input, as "curl | sh" does.
func (s shop) install(t *testing.T, env []string, args ...string) (string, error) {
	t.Helper()
	script, err := os.Open(filepath.Join(s.dir, installFile))
	if err != nil {
		t.Fatal(err)
	}
	defer script.Close()
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-s", "--"}, args...)...)
	cmd.Stdin = script
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{"PATH=" + s.path, "HOME=" + t.TempDir(), "http_proxy="}, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestInstall(t *testing.T) {
	s := newShop(t)
	for _, env := range [][]string{nil, {"FAKE_OS=Darwin", "FAKE_ARCH=arm64"}, {"FAKE_ARCH=amd64"}} {
		dir := filepath.Join(t.TempDir(), "a folder")
		for range 2 { // the second run replaces the program
			out, err := s.install(t, env, "--from", s.url, "--dir", dir)
			if err != nil || !strings.Contains(out, "Leat v1.2.0 is installed: "+dir+"/leat") || !strings.Contains(out, "not in your PATH") {
				t.Fatalf("%v: %v\n%s", env, err, out)
			}
		}
		out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "leat"), "version").Output()
		if err != nil || string(out) != "leat stub version\n" {
			t.Errorf("the output is %q, %v", out, err)
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
			t.Errorf("files left behind: %v, %v", files, err)
		}
	}
	home := t.TempDir()
	if out, err := s.install(t, []string{"HOME=" + home}, "--from", s.url); err != nil {
		t.Errorf("%v\n%s", err, out)
	} else if _, err := os.Stat(filepath.Join(home, ".local/bin/leat")); err != nil {
		t.Error(err)
	}
}

// If anything is wrong, nothing is installed, and the message names the reason.
func TestInstallRefuses(t *testing.T) {
	s := newShop(t)
	broken := newShop(t)
	name := tried.name(target{"linux", "amd64"}) + ".tar.gz"
	if err := write(broken.dir, name, []byte("something else"), 0o644); err != nil {
		t.Fatal(err)
	}
	unknown := newShop(t)
	if err := write(unknown.dir, sumsFile, []byte("00  x"+name+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for want, try := range map[string]struct {
		shop
		env  []string
		args []string
	}{
		"its checksum is":                            {broken, nil, []string{"--from", broken.url}},
		"the release has no " + name:                 {unknown, nil, []string{"--from", unknown.url}},
		"the release has no leat-v1.2.0-linux-arm64": {s, []string{"FAKE_ARCH=aarch64"}, []string{"--from", s.url}},
		"the release has no leat-v9":                 {s, nil, []string{"--from", s.url, "--version", "v9"}},
		"there is no SHA256SUMS":                     {s, nil, []string{"--from", s.url + "/elsewhere"}},
		"there is no Leat for FreeBSD":               {s, []string{"FAKE_OS=FreeBSD"}, []string{"--from", s.url}},
		"for the processor riscv64":                  {s, []string{"FAKE_ARCH=riscv64"}, []string{"--from", s.url}},
		"unknown argument --sudo":                    {s, nil, []string{"--sudo"}},
		"--version needs a value":                    {s, nil, []string{"--version"}},
	} {
		dir := filepath.Join(t.TempDir(), "bin")
		out, err := try.install(t, try.env, append([]string{"--dir", dir}, try.args...)...)
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("got %v, want %q:\n%s", err, want, out)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: something was installed", want)
		}
	}
	if out, err := s.install(t, []string{"HOME="}, "--from", s.url); err == nil || !strings.Contains(out, "HOME is not set") {
		t.Errorf("without a home folder: %v\n%s", err, out)
	}
	if out, err := s.install(t, nil, "--help"); err != nil || !strings.Contains(out, "--from URL") {
		t.Errorf("help: %v\n%s", err, out)
	}
}

// The commands of docs/install.md work, with a mirror instead of the releases on GitHub.
func TestDocumentedCommands(t *testing.T) {
	s := newShop(t)
	for _, program := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("SKIPPED: %s is not installed; install it to test the commands of docs/install.md (apt-get install %s)", program, program)
		}
	}
	doc, err := os.ReadFile("../../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile(filepath.Join(s.dir, installFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := write(s.dir, installFile, []byte(strings.ReplaceAll(string(script), downloads+"/$version", s.url)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(s.dir, formulaFile)); err != nil { // users don't download the formula
		t.Fatal(err)
	}
	snippets := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(doc), -1)
	if len(snippets) != 2 || strings.Count(string(doc), "```") != 2*len(snippets) {
		t.Fatalf("%d snippets", len(snippets))
	}
	for i, m := range snippets {
		cmd := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", strings.ReplaceAll(m[1], strings.TrimSuffix(downloads, "/download")+"/latest/download", s.url))
		cmd.Env = append(os.Environ(), "PATH="+s.path)
		if cmd.Dir = t.TempDir(); i == 1 { // the manual installation: the downloaded files are in the current folder
			cmd.Dir = s.dir
			sums, err := sum(s.dir)
			if err != nil {
				t.Fatal(err)
			}
			line := ""
			for _, c := range sums {
				if strings.HasSuffix(c.name, ".tar.gz") {
					line += c.hex + "  " + c.name + "\n"
				}
			}
			if err := write(s.dir, sumsFile, []byte(line+strings.Repeat("0", 64)+"  leat-of-another-system.zip\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.HasSuffix(string(out), "leat stub version\n") {
			t.Errorf("%s%v\n%s", m[1], err, out)
		}
	}
}

func TestShellcheck(t *testing.T) {
	path, err := exec.LookPath("shellcheck")
	if err != nil {
		t.Skip("SKIPPED: shellcheck is not installed; install it to check install.sh (apt-get install shellcheck)")
	}
	if out, err := exec.CommandContext(t.Context(), path, "install.sh").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
