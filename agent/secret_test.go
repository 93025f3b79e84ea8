package agent_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
)

func TestSpecSecret(t *testing.T) {
	t.Setenv("LEAT_TEST_SECRET", " s3cret\n")
	t.Setenv("LEAT_TEST_EMPTY", " ")
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, empty, large := file("good", "s3cret\n"), file("empty", "\n"), file("large", strings.Repeat("s3cret", 4096))
	for _, tt := range []struct {
		options map[string]string
		want    string // the secret, or a part of the error
		fails   bool
	}{
		{nil, "", false},
		{map[string]string{"token": " s3cret "}, "s3cret", false},
		{map[string]string{"token_env": "LEAT_TEST_SECRET"}, "s3cret", false},
		{map[string]string{"token_file": good}, "s3cret", false},
		{map[string]string{"token": " "}, "token is empty", true},
		{map[string]string{"token_env": ""}, "token_env is empty", true},
		{map[string]string{"token_file": ""}, "token_file is empty", true},
		{map[string]string{"token_env": "LEAT_TEST_EMPTY"}, "token_env: the environment variable LEAT_TEST_EMPTY is not set", true},
		{map[string]string{"token_env": "LEAT_TEST_NO_SUCH_VARIABLE"}, "LEAT_TEST_NO_SUCH_VARIABLE is not set", true},
		{map[string]string{"token_file": empty}, "empty is empty", true},
		{map[string]string{"token_file": large}, "larger than 16384 bytes", true},
		{map[string]string{"token_file": filepath.Join(dir, "missing")}, "token_file: open", true},
		{map[string]string{"token": "s3cret", "token_env": "LEAT_TEST_SECRET"}, "token and token_env are both set", true},
		{map[string]string{"token_env": "LEAT_TEST_SECRET", "token_file": good}, "token_env and token_file are both set", true},
	} {
		got, err := agent.Spec{Options: tt.options}.Secret("token")
		switch {
		case tt.fails && (err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "s3cret") || got != ""):
			t.Errorf("%v: got %q, %v; want the error %q", tt.options, got, err, tt.want)
		case !tt.fails && (err != nil || got != tt.want):
			t.Errorf("%v: got %q, %v; want %q", tt.options, got, err, tt.want)
		}
	}
}

func TestSpecBool(t *testing.T) {
	for value, want := range map[string]bool{"1": true, "true": true, "TRUE": true, "t": true, "0": false, "false": false, "F": false} {
		s := agent.Spec{Options: map[string]string{"background": value}}
		if got, err := s.Bool("background", !want); err != nil || got != want {
			t.Errorf("%s: got %v, %v", value, got, err)
		}
	}
	for _, value := range []string{"", "yes", "2"} {
		s := agent.Spec{Options: map[string]string{"background": value}}
		if _, err := s.Bool("background", true); err == nil || !strings.Contains(err.Error(), "background") {
			t.Errorf("%q: got %v, want an error", value, err)
		}
	}
	if got, err := (agent.Spec{}).Bool("background", true); err != nil || !got {
		t.Errorf("default: got %v, %v", got, err)
	}
}

// secretKinds has one kind, "model", whose option api_key_env is now token_env.
func secretKinds(seen *agent.Spec) agent.Kinds {
	return agent.Kinds{{
		Name: "model", Target: "MODEL", Options: agent.SecretOptions("token", "key", ""), Renamed: map[string]string{"api_key_env": "token_env"},
		New: func(s agent.Spec) (agent.Agent, error) { *seen = s; return nil, nil },
		Discover: func(_ context.Context, s agent.Spec) ([]agent.Offer, error) {
			*seen = s
			s.Name, s.Target = s.Kind, "m"
			return []agent.Offer{{Spec: s.String()}}, nil
		},
	}}
}

func TestRenamedOption(t *testing.T) {
	t.Setenv("LEAT_TEST_SECRET", "s3cret")
	var seen agent.Spec
	kinds := secretKinds(&seen)
	s, err := agent.ParseSpec("a=model:m?api_key_env=LEAT_TEST_SECRET")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kinds.Make(s); err != nil || seen.Options["token_env"] != "LEAT_TEST_SECRET" || len(seen.Options) != 1 {
		t.Errorf("made from %v: %v", seen.Options, err)
	}
	want := []string{"agent a: the option api_key_env is now named token_env; use the new name"}
	if got := kinds.Warnings(s); !slices.Equal(got, want) {
		t.Errorf("warnings: %q, want %q", got, want)
	}
	if got := kinds.Masked(s).String(); got != "a=model:m?token_env=LEAT_TEST_SECRET" {
		t.Errorf("masked: %s", got)
	}
	if got := kinds.Secrets(s); !slices.Equal(got, []string{"s3cret"}) {
		t.Errorf("secrets: %q", got)
	}
	if s.Options["api_key_env"] == "" {
		t.Error("the spec itself has changed")
	}
	s.Options["token_env"] = "OTHER"
	if _, err := kinds.Make(s); err == nil || !strings.Contains(err.Error(), "api_key_env is the old name of token_env, and both are set") {
		t.Errorf("both names: %v", err)
	}
	if got := kinds.Warnings(seen); got != nil {
		t.Errorf("warnings about current names: %q", got)
	}
}

func TestSecretIsNotShown(t *testing.T) {
	var seen agent.Spec
	kinds := secretKinds(&seen)
	s, err := agent.ParseSpec("a=model:m?token=s3cret")
	if err != nil {
		t.Fatal(err)
	}
	if got := kinds.Masked(s).String(); strings.Contains(got, "s3cret") {
		t.Errorf("masked: %s", got)
	}
	offers, err := kinds.Discover(t.Context(), s)
	if err != nil || seen.Options["token"] != "s3cret" {
		t.Fatalf("discovered with %v: %v", seen.Options, err)
	}
	if offers[0].Spec != "model:m" {
		t.Errorf("offer: %s", offers[0].Spec)
	}
	for _, broken := range []string{"=model:m?token=s3cret", "a b?token=s3cret", "model:m?token=s3cret&silence=x", "model:m?token=s3cret&token=s3cret", "http://h/?secret=s3cret&silence=x"} {
		if _, err := agent.ParseSpec(broken); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", broken, err)
		}
	}
	if _, err := kinds.Make(agent.Spec{Name: "a", Kind: "other", Options: s.Options}); !errors.Is(err, agent.ErrUnknownKind) || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("unknown kind: %v", err)
	}
}
