package config_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/leat-dev/leat/internal/app/config"
)

// The settings in the examples of docs/eliza.md are valid.
func TestElizaDocs(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/eliza.md")
	if err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(doc, -1)
	if len(all) == 0 {
		t.Fatal("the page has no examples")
	}
	for _, block := range all {
		c := config.Default()
		if err := c.Parse("leat.yaml", block[1]); err != nil {
			t.Errorf("%s: %v", block[1], err)
		}
		if err := c.Check(kinds, getenv); err != nil {
			t.Errorf("%s: %v", block[1], err)
		}
		if !c.AppOrigins || len(c.AllowedOrigins) == 0 {
			t.Errorf("%s: the values are not the ones that the page describes", block[1])
		}
	}
}
