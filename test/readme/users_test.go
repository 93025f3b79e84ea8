package readme

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// keys are the names of a JSON object's fields, and of those in the one that it wraps.
func keys(t *testing.T, text string) (all []string) {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for k, inner := range v {
		all = append(all, k)
		if m, ok := inner.(map[string]any); ok {
			for k := range m {
				all = append(all, k)
			}
		}
	}
	slices.Sort(all)
	return all
}

// TestUsersOfTheDocs runs docs/users.md as it stands, in one shell, against a gateway with its configuration.
func TestUsersOfTheDocs(t *testing.T) {
	needs(t, "curl", "apt-get install curl")
	needs(t, "bash", "apt-get install bash")
	needs(t, "openssl", "apt-get install openssl")
	b, err := os.ReadFile("../../docs/users.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "leat.yaml")
	if err := os.WriteFile(file, []byte(block(t, "docs/users.md", "yaml", "users:")), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LEAT_USERS_SECRET", "")
	if err := os.Unsetenv("LEAT_USERS_SECRET"); err != nil {
		t.Fatal(err)
	}
	url := serve(t, "--token", "sesame", "--config", file)
	// Each block's commands print a line each; the pictures of answers follow theirs.
	var script strings.Builder
	script.WriteString("set -euo pipefail\n")
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(b), -1) {
		script.WriteString(regexp.MustCompile(`(?m)^(curl .*?)(   #.*)?$`).ReplaceAllString(m[1], "$1; echo"))
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script.String())
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LEAT="+url, "LEAT_API_TOKEN=sesame")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })
	for i, want := range []string{
		`"subject":"alice"`, "plans~", `{"conversations":[]}`, `"not_found"`, // access granted
		`"subject":"alice"`, `"id":"plans~`, // by cookie; logging out prints nothing
		`"seq"`, `"access":"read"`, `"seq"`, // shared
		`"title":"Plans"`, // acting
	} {
		if i >= len(lines) || !strings.Contains(lines[i], want) {
			t.Fatalf("line %d has no %s:\n%s", i+1, want, out)
		}
	}
	for picture, line := range map[string]string{"tokenNeeded": lines[0], `"owner"`: lines[7]} {
		if want, got := keys(t, block(t, "docs/users.md", "json", picture)), keys(t, line); !slices.Equal(want, got) {
			t.Errorf("docs/users.md shows %v, the gateway answers %v", want, got)
		}
	}
}
