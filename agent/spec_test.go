package agent_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/leat-dev/leat/agent"
)

func TestParseSpec(t *testing.T) {
	tests := []struct {
		in   string
		want agent.Spec
	}{
		{"demo", agent.Spec{Name: "demo", Kind: "demo"}},
		{"demo?speed=2", agent.Spec{Name: "demo", Kind: "demo", Options: map[string]string{"speed": "2"}}},
		{"x=demo", agent.Spec{Name: "x", Kind: "demo"}},
		{
			"take=replay:a/b=c.jsonl?dialect=openclaw&speed=4",
			agent.Spec{Name: "take", Kind: "replay", Target: "a/b=c.jsonl", Options: map[string]string{"dialect": "openclaw", "speed": "4"}},
		},
		{"replay:C:\\x y.jsonl", agent.Spec{Name: "replay", Kind: "replay", Target: `C:\x y.jsonl`}},
		{"replay:a=b", agent.Spec{Name: "replay", Kind: "replay", Target: "a=b"}},
		{"k?a=%3F%26&b=x+y", agent.Spec{Name: "k", Kind: "k", Options: map[string]string{"a": "?&", "b": "x y"}}},
		{"https://h:1/p=q?dialect=d", agent.Spec{Name: "http", Kind: "http", Target: "https://h:1/p=q", Options: map[string]string{"dialect": "d"}}},
		{"web=http://h/", agent.Spec{Name: "web", Kind: "http", Target: "http://h/"}},
		{"demo?silence=90s", agent.Spec{Name: "demo", Kind: "demo", Silence: 90 * time.Second}},
		{"demo?silence=0", agent.Spec{Name: "demo", Kind: "demo", Silence: -1}},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			got, err := agent.ParseSpec(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Options) == 0 {
				got.Options = nil
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestParseSpecRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"":                        "kind is missing",
		"=demo":                   "name before = is empty",
		"x=":                      "kind is missing",
		":file":                   "kind is missing",
		"a b":                     "letters, digits",
		"x y=demo":                "letters, digits",
		"demo?speed=1&speed=2":    "2 times",
		"demo?speed=%zz":          "invalid URL escape",
		"demo?silence=soon":       "90s",
		"demo?silence=-1s":        "90s",
		strings.Repeat("a", 65):   "64 characters",
		"demo?a=1;b=2":            "semicolon",
		"naïve=demo":              "letters, digits",
		"demo\x00":                "letters, digits",
		"na/me=demo":              "letters, digits",
		"n=demo:t?silence=1s&x=%": "invalid URL escape",
	} {
		if _, err := agent.ParseSpec(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", in, err, want)
		}
	}
}

// String and ParseSpec are inverses.
func TestSpecRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z0-9._-]{1,12}`)
		want := agent.Spec{
			Name: name.Draw(t, "name"), Kind: name.Draw(t, "kind"),
			Target:  rapid.StringMatching(`[^?]{0,20}`).Draw(t, "target"),
			Options: rapid.MapOf(rapid.StringMatching(`[a-rt-z]{1,8}`), rapid.String()).Draw(t, "options"),
			Silence: time.Duration(rapid.IntRange(1, 1e6).Draw(t, "silence")) * time.Millisecond,
		}
		got, err := agent.ParseSpec(want.String())
		if err != nil {
			t.Fatalf("%s: %v", want, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%s: %s", want, d)
		}
	})
}

func TestKinds(t *testing.T) {
	boom := errors.New("boom")
	kinds := agent.Kinds{
		{Name: "plain", New: func(agent.Spec) (agent.Agent, error) { return nil, nil }},
		{
			Name: "file", Target: "FILE", Options: []agent.Option{{Name: "speed"}, {Name: "key", Secret: true}},
			New: func(agent.Spec) (agent.Agent, error) { return nil, boom },
		},
	}
	for in, want := range map[string]string{
		"plain":           "",
		"plain:x":         `kind plain has no target`,
		"plain?x=1":       `kind plain has no option "x"; it has silence, description, suggestions`,
		"file":            `kind file needs a target: file:FILE`,
		"n=file:x":        `agent n: boom`,
		"file:x?sped=2":   `no option "sped"; it has speed, key, silence, description, suggestions`,
		"nothing":         `unknown kind "nothing"; use one of plain, file`,
		"file:x?key=s3cr": `boom`,
	} {
		spec, err := agent.ParseSpec(in)
		if err != nil {
			t.Fatal(err)
		}
		_, err = kinds.Make(spec)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v, want %q", in, err, want)
		}
	}
	s, _ := agent.ParseSpec("file:x?key=s3cr&speed=2")
	if got := kinds.Masked(s).String(); strings.Contains(got, "s3cr") || !strings.Contains(got, "speed=2") {
		t.Errorf("masked: %s", got)
	}
	if s.Options["key"] != "s3cr" {
		t.Error("masking changed the spec itself")
	}
}

func TestSpecFloat(t *testing.T) {
	for v, want := range map[string]float64{"": 1, "0": 0, "2.5": 2.5, "-1": -1, "NaN": -1, "Inf": -1, "1e12": -1, "x": -1} {
		s := agent.Spec{Options: map[string]string{}}
		if v != "" {
			s.Options["speed"] = v
		}
		got, err := s.Float("speed", 1)
		if want < 0 {
			if err == nil {
				t.Errorf("%q: no error", v)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%q: %v, %v", v, got, err)
		}
	}
}

func TestIntroduction(t *testing.T) {
	spec, err := agent.ParseSpec("demo?description=Counts.&suggestions=One%0ATwo")
	if err != nil {
		t.Fatal(err)
	}
	want := agent.Spec{Name: "demo", Kind: "demo", Options: map[string]string{}, Description: "Counts.", Suggestions: []string{"One", "Two"}}
	if d := cmp.Diff(want, spec); d != "" {
		t.Error(d)
	}
	again, err := agent.ParseSpec(spec.String())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(spec, again); d != "" {
		t.Error(d)
	}
	for in, want := range map[string]string{
		"demo?description=one%0Atwo":                       "one line",
		"demo?description=+":                               "one line",
		"demo?description=" + strings.Repeat("x", 201):     "200 bytes",
		"demo?suggestions=a%0A%0Ab":                        "one line",
		"demo?suggestions=1%0A2%0A3%0A4%0A5":               "5 suggestions; at most 4",
		"demo?suggestions=a%0A" + strings.Repeat("x", 201): "200 bytes",
	} {
		if _, err := agent.ParseSpec(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", in, err, want)
		}
	}
}
