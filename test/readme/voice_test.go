package readme

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The program accepts the configurations and the settings of docs/voice.md. A variable that a configuration names is needed.
func TestVoicePage(t *testing.T) {
	b, err := os.ReadFile("../../docs/voice.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	check := func(args []string, env ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), program(t), append([]string{"config", "check"}, args...)...)
		cmd.Dir = t.TempDir()
		cmd.Env = append([]string{"HOME=" + cmd.Dir, "PATH=" + os.Getenv("PATH")}, env...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	yaml := regexp.MustCompile("(?s)```yaml\n(voice:.*?)```").FindAllStringSubmatch(page, -1)
	if len(yaml) < 2 {
		t.Fatalf("%d configurations", len(yaml))
	}
	for _, m := range yaml {
		file := filepath.Join(t.TempDir(), "leat.yaml")
		if err := os.WriteFile(file, []byte(m[1]), 0o600); err != nil {
			t.Fatal(err)
		}
		var env []string
		for _, name := range regexp.MustCompile(`_env: (\w+)`).FindAllStringSubmatch(m[1], -1) {
			env = append(env, name[1]+"=key")
		}
		if out, err := check([]string{"--config", file}, env...); err != nil {
			t.Errorf("%v: %s\n%s", err, out, m[1])
		}
	}
	command := regexp.MustCompile(`(?m)^(LEAT_\w+=\w+) leat serve (.*)$`).FindStringSubmatch(page)
	if command == nil {
		t.Fatal("the page has no command")
	}
	if out, err := check(strings.Fields(command[2]), command[1], "OPENAI_API_KEY=key"); err != nil {
		t.Errorf("%s: %v: %s", command[0], err, out)
	}
}
