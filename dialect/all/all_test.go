package all

import (
	"slices"
	"testing"

	"github.com/leat-dev/leat/dialect"
)

func TestRegistry(t *testing.T) {
	var names []string
	for _, d := range Registry().List() {
		names = append(names, d.Name)
		if d.Summary == "" {
			t.Errorf("%s has no summary", d.Name)
		}
		st, err := d.Decoder().State()
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Decoder().Restore(st); err != nil {
			t.Errorf("%s: restore at the beginning: %v", d.Name, err)
		}
		if _, err := dialect.NewStream(d).Close(); err == nil {
			t.Errorf("%s: Close of an empty stream reports no cut", d.Name)
		}
	}
	if want := []string{"a2a", "acp", "ag-ui", "agentsdk", "aisdk", "anthropic", "eliza-actions", "eliza-chat", "gemini", "langgraph", "leat", "letta", "letta-code", "ollama", "openai-chat", "openai-responses", "openclaw"}; !slices.Equal(names, want) {
		t.Errorf("dialects %q, want %q", names, want)
	}
}
