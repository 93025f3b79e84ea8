package all_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/all"
	dialects "github.com/leat-dev/leat/dialect/all"
)

// targets are the targets of the kinds with a secret that don't take an http URL of a server.
var targets = map[string]string{
	"openclaw": "ws://127.0.0.1:1", "letta": "http://127.0.0.1:1", "anthropic": "m", "openai": "m", "responses": "m", "gemini": "m", "ollama": "m",
}

func TestSecretsMeanTheSameInEachKind(t *testing.T) {
	kinds := all.Kinds(dialects.Registry())
	var taking []string
	for _, kind := range kinds {
		name := "token"
		if kind.Name == "http" {
			name = "secret" // it signs requests
		}
		has := func(option string, secret bool) bool {
			return slices.ContainsFunc(kind.Options, func(o agent.Option) bool { return o.Name == option && o.Secret == secret })
		}
		if !has(name, true) {
			continue
		}
		taking = append(taking, kind.Name)
		if !has(name+"_env", false) || !has(name+"_file", false) {
			t.Errorf("%s: %s_env or %s_file is missing", kind.Name, name, name)
		}
		target := targets[kind.Name]
		if target == "" {
			target = "http://127.0.0.1:1"
		}
		for option, want := range map[string]string{
			name + "=":                               name + " is empty",
			name + "=s3cret&" + name + "_env=A":      name + " and " + name + "_env are both set",
			name + "_env=LEAT_TEST_NO_SUCH_VARIABLE": name + "_env: the environment variable LEAT_TEST_NO_SUCH_VARIABLE is not set",
			name + "_file=/no/such/file":             name + "_file: ",
		} {
			s, err := agent.ParseSpec(kind.Name + ":" + target + "?" + option)
			if err != nil {
				t.Fatal(err)
			}
			if kind.Name == "letta" {
				s.Options["agent"] = "a"
			}
			if _, err := kinds.Make(s); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%s?%s: %v, want %q", kind.Name, option, err, want)
			}
		}
	}
	want := []string{"a2a", "agentsdk", "agui", "aisdk", "anthropic", "eliza", "gemini", "http", "langgraph", "letta", "ollama", "openai", "openclaw", "responses"}
	if slices.Sort(taking); !slices.Equal(taking, want) {
		t.Errorf("kinds with a secret: %v, want %v", taking, want)
	}
}

func TestBackgroundTakesTheSameWordsInEachKind(t *testing.T) {
	kinds := all.Kinds(dialects.Registry())
	for _, spec := range []string{"letta:http://127.0.0.1:1?agent=a", "responses:m?base_url=http://127.0.0.1:1"} {
		for value, valid := range map[string]bool{"1": true, "0": true, "true": true, "False": true, "yes": false, "": false} {
			s, err := agent.ParseSpec(spec + "&background=" + value)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := kinds.Make(s); (err == nil) != valid {
				t.Errorf("%s: background=%s: %v", spec, value, err)
			}
		}
	}
}
