package config_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/leat-dev/leat/internal/app/config"
)

// The settings that docs/eliza.md shows are ones that a gateway takes.
func TestElizaDocs(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/eliza.md")
	if err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(doc, -1)
	if len(all) == 0 {
		t.Fatal("it shows none")
	}
	for _, block := range all {
		c := config.Default()
		if err := c.Parse(block[1]); err != nil {
			t.Errorf("%s: %v", block[1], err)
		}
		if err := c.Check(kinds, getenv); err != nil {
			t.Errorf("%s: %v", block[1], err)
		}
		if !c.AppOrigins || len(c.AllowedOrigins) == 0 {
			t.Errorf("%s: it does not come to the settings that the page names", block[1])
		}
	}
}
