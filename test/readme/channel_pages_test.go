package readme

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// secretsOfPages are values with the form that each platform's secrets have, for the variables of the pages.
var secretsOfPages = map[string]string{
	"TELEGRAM_BOT_TOKEN": "123456:ABC-DEF", "DISCORD_BOT_TOKEN": "MTIz.abc.def", "MATRIX_ACCESS_TOKEN": "syt_abc", "SLACK_BOT_TOKEN": "xoxb-1-2-abc",
	"SLACK_APP_TOKEN": "xapp-1-A-2-abc", "WHATSAPP_TOKEN": "EAAabc", "WHATSAPP_APP_SECRET": "0123456789abcdef0123456789abcdef", "WHATSAPP_VERIFY_TOKEN": "verify",
	"FEISHU_APP_SECRET": "0123456789abcdef0123456789abcdef", "FEISHU_ENCRYPT_KEY": "0123456789abcdef", "WECOM_BOT_SECRET": "0123456789abcdef",
}

// The configurations and the first command of each page in docs/channels are accepted by the program, and each secret is needed: without its
// variable the configuration is refused with the variable's name.
func TestPagesOfChannels(t *testing.T) {
	pages, err := filepath.Glob("../../docs/channels/*.md")
	if err != nil || len(pages) < 8 {
		t.Fatalf("pages %q, %v", pages, err)
	}
	check := func(t *testing.T, without string, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), program(t), append([]string{"config", "check"}, args...)...)
		cmd.Dir = t.TempDir()
		cmd.Env = []string{"HOME=" + cmd.Dir, "PATH=" + os.Getenv("PATH")}
		for name, value := range secretsOfPages {
			if name != without {
				cmd.Env = append(cmd.Env, name+"="+value)
			}
		}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, page := range pages {
		t.Run(filepath.Base(page), func(t *testing.T) {
			b, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			text, checked := string(b), 0
			for _, m := range regexp.MustCompile("(?s)```yaml\n(channels:.*?)```").FindAllStringSubmatch(text, -1) {
				checked++
				// Agents of the page's own are not in the configuration.
				yaml := regexp.MustCompile(`(?m)^ +agent: .*\n`).ReplaceAllString(m[1], "")
				file := filepath.Join(t.TempDir(), "leat.yaml")
				if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
					t.Fatal(err)
				}
				if out, err := check(t, "", "--config", file); err != nil {
					t.Errorf("%v: %s\n%s", err, out, yaml)
				}
				for _, name := range regexp.MustCompile(`_env: (\w+)`).FindAllStringSubmatch(yaml, -1) {
					if out, err := check(t, name[1], "--config", file); err == nil || !strings.Contains(out, name[1]) {
						t.Errorf("without %s: %v: %s", name[1], err, out)
					}
				}
			}
			for _, m := range regexp.MustCompile(`leat serve --channel "?([^"\n]+)`).FindAllStringSubmatch(text, -1) {
				checked++
				if out, err := check(t, "", "--channel", m[1]); err != nil {
					t.Errorf("--channel %s: %v: %s", m[1], err, out)
				}
			}
			if checked == 0 {
				t.Error("the page has neither a configuration nor a command")
			}
		})
	}
}
