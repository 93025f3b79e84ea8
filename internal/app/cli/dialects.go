package cli

import (
	"fmt"

	"github.com/leat-dev/leat/dialect"
)

// dialectsCmd lists the dialects that this program can decode, in the order of their names.
type dialectsCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// dialectInfo is a dialect in the list and its JSON.
type dialectInfo struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
	Framing string `json:"framing"` // sse or lines
	Encodes bool   `json:"encodes"` // Leat can also write this format
}

// Run prints the dialects of this binary. It needs no gateway.
func (c *dialectsCmd) Run(a *app) error {
	// The list is never nil, so that its JSON is always a list.
	rows := []dialectInfo{}
	for _, d := range a.dialects.List() {
		framing := "sse"
		if d.Framing == dialect.Lines {
			framing = "lines"
		}
		rows = append(rows, dialectInfo{d.Name, d.Summary, framing, d.Encoder != nil})
	}
	if c.JSON {
		return a.printJSON(rows, nil)
	}
	w := a.table()
	for _, d := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\n", d.Name, d.Framing, d.Summary)
	}
	return w.Flush()
}
