package openclaw

import (
	"encoding/json"
	"strings"
	"testing"
)

// A null row is skipped.
func TestHistoryFrame(t *testing.T) {
	var rows []row
	if err := json.Unmarshal([]byte(`[null,{"role":"assistant","content":"hello"}]`), &rows); err != nil {
		t.Fatal(err)
	}
	b, err := historyFrame(rows, "r1")
	if err != nil || strings.Count(string(b), `"__openclaw":{"runId":"r1"}`) != 1 || !strings.Contains(string(b), "hello") {
		t.Errorf("%s, %v", b, err)
	}
}
