package serve

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
	agents "github.com/leat-dev/leat/agent/all"
	dialects "github.com/leat-dev/leat/dialect/all"
	"github.com/leat-dev/leat/internal/app/config"
)

func TestSecretsOfAgents(t *testing.T) {
	t.Setenv("LEAT_TEST_TOKEN", "from-env")
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	kinds := agents.Kinds(dialects.Registry())
	for spec, want := range map[string][]string{
		"letta:ws://h?agent=a&token=given":                  {"given"},
		"openclaw:ws://h?token_file=" + file:                {"from-file"},
		"http://h/?secret_env=LEAT_TEST_TOKEN":              {"from-env"},
		"openai:m?api_key_env=LEAT_TEST_TOKEN":              {"from-env"},
		"openai:m?token_env=LEAT_TEST_NO_SUCH_VARIABLE":     nil,
		"anthropic:m?system_file=" + file:                   nil, // the system prompt is not a secret
		"exec:agent?env=LEAT_TEST_TOKEN%2CLEAT_TEST_ABSENT": {"from-env"},
		"unknown:x?token=given":                             nil,
	} {
		s, err := agent.ParseSpec(spec)
		if err != nil {
			t.Fatal(err)
		}
		if got := Secrets(kinds, s, os.LookupEnv); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", spec, got, want)
		}
	}
}

func TestOldOptionIsLogged(t *testing.T) {
	t.Setenv("LEAT_TEST_TOKEN", "s3cret")
	s, err := agent.ParseSpec("groq=openai:m?api_key_env=LEAT_TEST_TOKEN")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	cfg := config.Default()
	if _, err := newAgent(&cfg, agents.Kinds(dialects.Registry()), s, os.LookupEnv, slog.New(slog.NewTextHandler(&b, nil))); err != nil {
		t.Fatal(err)
	}
	const want = "level=WARN msg=\"agent groq: the option api_key_env is now named token_env; use the new name\"\n"
	if got := b.String(); strings.Count(got, want) != 1 || strings.Contains(got, "s3cret") {
		t.Errorf("log:\n%s\nwant one line with:\n%s", got, want)
	}
}
