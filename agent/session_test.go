package agent

import "testing"

func TestExpand(t *testing.T) {
	in := Input{Conversation: "c1", Principal: Principal{Tenant: "acme", Subject: "ann"}}
	for template, want := range map[string]string{
		"":                               "",
		"main":                           "main",
		"leat:{tenant}:{conversation}":   "leat:acme:c1",
		"{subject}{subject}/{tenant}-x":  "annann/acme-x",
		"agent:main:leat-{conversation}": "agent:main:leat-c1",
	} {
		if got, err := Expand(template, in); err != nil || got != want {
			t.Errorf("Expand(%q) = %q, %v, not %q", template, got, err, want)
		}
	}
	for _, template := range []string{"{", "}", "a}b", "{user}", "{}", "{tenant", "{{tenant}}", "{ tenant }"} {
		if got, err := Expand(template, in); err == nil {
			t.Errorf("Expand(%q) = %q without an error", template, got)
		}
	}
}
