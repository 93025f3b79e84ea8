package openclaw

import (
	"encoding/json"
	"strings"
	"testing"
)

// A history with a row that is null is read like one without it; a map that is not there takes no key.
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
