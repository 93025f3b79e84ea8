package config_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	agents "github.com/leat-dev/leat/agent/all"
	"github.com/leat-dev/leat/dialect/all"
	"github.com/leat-dev/leat/internal/app/config"
)

const example = "../../../leat.example.yaml"

// leat.example.yaml has every key with its default and its variables, and every option of every kind of agent.
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
	if d := cmp.Diff(want, c, emptyIsNil, cmpopts.IgnoreUnexported(config.Config{})); d != "" {
		t.Errorf("the example's values are not the defaults (-default +example):\n%s", d)
	}
	lines := strings.Split(text, "\n")
	for _, k := range want.Keys() {
		indent, key, from := "", k.Path, 0
		for {
			group, rest, ok := strings.Cut(key, ".")
			if !ok {
				break
			}
			at := slices.Index(lines[from:], indent+group+":")
			if at < 0 {
				t.Fatalf("%s: group %s is missing", k.Path, group)
			}
			indent, key, from = indent+"  ", rest, from+at
		}
		found := false
		for i, l := range lines {
			if i < from || found {
				continue
			}
			if !strings.HasPrefix(l, indent+key+":") {
				continue
			}
			found = true
			about := ""
			for i--; i >= 0 && strings.HasPrefix(strings.TrimSpace(lines[i]), "#"); i-- {
				about = lines[i] + about
			}
			if live := strings.Contains(about, "Live. "); live != k.Reloadable {
				t.Errorf("%s: the comment says live: %v", k.Path, live)
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
			t.Errorf("leat.example.yaml has no agent of kind %s", kind.Name)
		}
		for _, o := range kind.Options {
			if !regexp.MustCompile(`(?m)^[ #]+` + o.Name + `: `).MatchString(text) {
				t.Errorf("leat.example.yaml: option %s of kind %s is missing", o.Name, kind.Name)
			}
		}
	}
}

// The agents that are commented out in the example are valid too.
func TestExampleCommentsAreRight(t *testing.T) {
	b, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	examples := 0 // agents that are commented out
	for _, l := range strings.Split(string(b), "\n") {
		if m := regexp.MustCompile(`^  # (\w+:|  \w+:.*)$`).FindStringSubmatch(l); m != nil {
			if !strings.HasPrefix(m[1], " ") {
				examples++
			}
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
	take := slices.Index(names, "take")
	if len(names) != examples+1 || take < 0 || c.Agents[take].Options["client"] != "c1" {
		t.Fatalf("agents: %v, want demo and %d examples", names, examples)
	}
	if err := c.Check(agents.Kinds(all.Registry()), getenv); err != nil {
		t.Error(err)
	}
	if _, ok := c.Agents[take].Options["silence"]; ok || c.Agents[0].Silence != 120*time.Second {
		t.Error("silence is an option of every kind and not one of the kind's own")
	}
}

// docs/config.md lists exactly the keys that a reload applies.
func TestLiveKeysAreDocumented(t *testing.T) {
	b, err := os.ReadFile("../../../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	c := config.Default()
	for _, k := range c.Keys() {
		if k.Reloadable {
			want = append(want, k.Path)
		}
	}
	_, section, ok := strings.Cut(string(b), "while the gateway runs\n")
	if !ok {
		t.Fatal("docs/config.md has no section about changes while the gateway runs")
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\|").FindAllStringSubmatch(section, -1) {
		got = append(got, m[1])
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
