package usage

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/event"
	ledger "github.com/leat-dev/leat/internal/service/usage"
)

// outcomes are the outcomes that have columns, in order.
var outcomes = []event.Outcome{event.Completed, event.Failed, event.Cancelled, event.Interrupted}

// writeCSV writes a line for each group, or one line without groups, with a column for each currency.
//
// The columns are: the dimensions, the counts, the tokens, and then one per currency, so amounts in
// different currencies are never added. A group without costs in a currency has an empty cell, which
// spreadsheets don't count as zero. The file is built in memory, so an error does not leave half a file.
func writeCSV(w http.ResponseWriter, r *http.Request, rep *ledger.Report) error {
	var b bytes.Buffer
	writer := csv.NewWriter(&b)
	writer.UseCRLF = true // as in RFC 4180
	var head []string
	for _, d := range rep.GroupBy {
		head = append(head, string(d))
	}
	head = append(head, "turns")
	for _, o := range outcomes {
		head = append(head, string(o))
	}
	head = append(head, "input", "output", "cache_read", "cache_write", "reasoning", "unpriced", "unreported", "duration_ms")
	currencies := rep.Currencies()
	for _, c := range currencies {
		head = append(head, "cost_"+c)
	}
	_ = writer.Write(head) // writer.Error returns the error
	groups := rep.Groups
	if len(rep.GroupBy) == 0 {
		groups = []*ledger.Group{{Sums: rep.Total}}
	}
	for _, g := range groups {
		var line []string
		for _, d := range rep.GroupBy {
			line = append(line, cell(g.Name(d)))
		}
		// The order has to be that of the column names above.
		numbers := []int64{g.Turns}
		for _, o := range outcomes {
			numbers = append(numbers, g.Outcomes[o])
		}
		numbers = append(numbers, g.Input, g.Output, g.CacheRead, g.CacheWrite, g.Reasoning, g.Unpriced, g.Unreported, g.Duration)
		for _, n := range numbers {
			line = append(line, strconv.FormatInt(n, 10))
		}
		for _, c := range currencies {
			amount := ""
			if a, ok := g.Cost[c]; ok {
				amount = a.String()
			}
			line = append(line, amount)
		}
		_ = writer.Write(line)
	}
	writer.Flush()
	if err := writer.Error(); err != nil {
		return fmt.Errorf("write csv: %w", err)
	}
	h := w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8; header=present")
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="usage-%s-%s.csv"`, rep.From, rep.To))
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(b.Bytes()) // best effort: the client may have disconnected
	}
	return nil
}

// cell prevents spreadsheets from evaluating a name as a formula, because users choose subjects and models.
//
// A leading apostrophe makes spreadsheets treat the cell as text. Other programs see the apostrophe as a
// part of the name.
func cell(name string) string {
	if name != "" && strings.ContainsRune("=+-@\t\r", rune(name[0])) {
		return "'" + name
	}
	return name
}
