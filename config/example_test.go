package config_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	agents "github.com/leat-dev/leat/agent/all"
	"github.com/leat-dev/leat/config"
	"github.com/leat-dev/leat/dialect/all"
)

const example = "../leat.example.yaml"

// The example has every key, with its default, its variables and, for agents, every option of every kind.
func TestExampleIsComplete(t *testing.T) {
	b, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	c, err := config.Load(example, env())
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	want.Agents = config.Agents{{Name: "demo", Kind: "demo", Options: map[string]string{"speed": "1"}, Silence: 120 * time.Second}}
	if d := cmp.Diff(want, c, emptyIsNil); d != "" {
		t.Errorf("the example's values are not the defaults (-default +example):\n%s", d)
	}
	lines := strings.Split(text, "\n")
	for _, k := range want.Keys() {
		indent, key := "", k.Path
		if group, leaf, ok := strings.Cut(k.Path, "."); ok {
			indent, key = "  ", leaf
			if !strings.Contains(text, "\n"+group+":\n") {
				t.Errorf("group %s is missing", group)
			}
		}
		found := false
		for i, l := range lines {
			if !strings.HasPrefix(l, indent+key+":") {
				continue
			}
			found = true
			about := ""
			for i--; i >= 0 && strings.HasPrefix(strings.TrimSpace(lines[i]), "#"); i-- {
				about = lines[i] + about
			}
			for _, name := range k.Env {
				if !strings.Contains(about, name) {
					t.Errorf("%s: the comment does not name %s", k.Path, name)
				}
			}
		}
		if !found {
			t.Errorf("%s is missing", k.Path)
		}
	}
	for _, kind := range agents.Kinds(all.Registry()) {
		if !strings.Contains(text, "kind: "+kind.Name) {
			t.Errorf("kind %s is missing", kind.Name)
		}
		for _, o := range kind.Options {
			if !regexp.MustCompile(`(?m)^[ #]+` + o.Name + `: `).MatchString(text) {
				t.Errorf("kind %s: option %s is missing", kind.Name, o.Name)
			}
		}
	}
}

// What is commented out is right as well.
func TestExampleCommentsAreRight(t *testing.T) {
	b, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, l := range strings.Split(string(b), "\n") {
		if m := regexp.MustCompile(`^  # ((?:take|  \w+):.*)$`).FindStringSubmatch(l); m != nil {
			l = "  " + m[1]
		}
		lines = append(lines, l)
	}
	path := filepath.Join(t.TempDir(), "leat.yaml")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(path, env())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, a := range c.Agents {
		names = append(names, a.Name)
	}
	if len(c.Agents) != 2 || c.Agents[1].Options["client"] != "c1" {
		t.Fatalf("agents: %v", names)
	}
	if err := c.Check(agents.Kinds(all.Registry()), getenv); err != nil {
		t.Error(err)
	}
	if _, ok := c.Agents[1].Options["silence"]; ok || c.Agents[0].Silence != 120*time.Second {
		t.Error("silence is an option of every kind and not one of the kind's own")
	}
}
