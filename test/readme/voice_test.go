package readme

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/chattest/telegram"
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

// TestVoiceNotesOfTheDocs does what docs/channels/telegram.md says about voice notes, with a fake of Telegram and of a recogniser, and real
// programs for speech: a note in which a person asks is answered with a text and a note that the platform's decoder can play.
func TestVoiceNotesOfTheDocs(t *testing.T) {
	for _, name := range []string{"espeak-ng", "opusenc", "opusdec"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("SKIPPED: %s is not installed; install espeak-ng and opus-tools", name)
		}
	}
	run := func(input []byte, name string, args ...string) []byte {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Stdin = bytes.NewReader(input)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(name, err)
		}
		return out
	}
	question := run(run([]byte("What is two plus two?"), "espeak-ng", "--stdout", "--stdin"), "opusenc", "--quiet", "-", "-")
	recognizer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f, _, err := r.FormFile("file"); r.URL.Path != "/v1/audio/transcriptions" || err != nil {
			t.Error(r.URL.Path, err)
		} else {
			_ = f.Close()
		}
		_, _ = w.Write([]byte(`{"text":"What is 2 + 2?"}`)) // the gateway has gone
	}))
	t.Cleanup(recognizer.Close)
	fake := telegram.New(telegram.Options{Token: "1:test"})
	api := httptest.NewServer(fake)
	t.Cleanup(api.Close)
	t.Setenv("TELEGRAM_BOT_TOKEN", "1:test")
	t.Setenv("OPENAI_API_KEY", "key")
	t.Setenv("LEAT_VOICE_RECOGNITION_ENGINE", "openai")
	t.Setenv("LEAT_VOICE_RECOGNITION_URL", recognizer.URL+"/v1")
	serve(t, "--channel", "telegram?allow=7&url="+url.QueryEscape(api.URL))
	fake.SendFile(telegram.Private(7, "Ann"), telegram.File{Content: question, IsVoice: true}, "", "")
	waitForText(t, fake, 7, "2 + 2 = 4")
	limit := time.After(time.Minute)
	for {
		changed := fake.Changed()
		for _, m := range fake.Visible(7) {
			if len(m.Files) == 1 && m.Files[0].IsVoice {
				if pcm := run(m.Files[0].Content, "opusdec", "--quiet", "--rate", "16000", "-", "-"); len(pcm) < 2*16000 {
					t.Errorf("the answer's note has %d bytes of sound", len(pcm))
				}
				return
			}
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("no voice note: %+v", fake.Messages(7))
		}
	}
}
