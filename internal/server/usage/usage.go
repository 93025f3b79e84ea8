package usage

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	ledger "github.com/leat-dev/leat/internal/service/usage"
)

// defaultDays is the default number of days in an answer, including today.
//
// It applies if the request has no "from", and counts back from "to".
const defaultDays = 30

// surface has the handler. Tests replace clock to fix the current day.
type surface struct {
	gw    *gateway.Gateway
	clock func() time.Time
}

// Register adds the route to a server.
//
// The route is for every authenticated caller: the gateway limits what a user may query to the user's own
// turns.
func Register(s *server.Server, gw *gateway.Gateway) {
	u := &surface{gw: gw, clock: time.Now}
	s.Handle(server.Route{Method: http.MethodGet, Pattern: "/api/usage", Access: server.Authenticated, Handler: u.get})
}

// get answers GET /api/usage. docs/usage.md describes its parameters.
//
// The parameter format wins over the Accept header, so that a link in a page can download CSV. The response varies
// with Accept, which caches must know.
func (u *surface) get(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return server.Invalid("the query cannot be parsed")
	}
	q, format, err := u.query(values)
	if err != nil {
		return err
	}
	if format == "" && prefersCSV(r.Header.Values("Accept")) {
		format = "csv"
	}
	rep, err := u.gw.Usage(r.Context(), p, q)
	if err != nil {
		return err
	}
	w.Header().Add("Vary", "Accept")
	if format == "csv" {
		return writeCSV(w, r, rep)
	}
	return server.Respond(w, rep, nil)
}

// query parses the request.
//
// Unknown and repeated parameters are errors, since a misspelled filter would otherwise report the costs
// of everybody. Days are in UTC, as in the ledger, and both ends are inclusive. An empty "by" means no
// groups, only the total. The ledger checks the dimensions and the length of the range. The returned format is
// "json", "csv", or empty if the client left the choice to its Accept header. All errors are 400 and name the
// parameter.
func (u *surface) query(values url.Values) (q ledger.Query, format string, err error) {
	today := u.clock().UTC()
	q.To = today.Format(time.DateOnly)
	q.GroupBy = []ledger.Dimension{ledger.ByDay}
	for key, list := range values {
		if len(list) != 1 && key != "by" {
			return q, "", server.Invalid("parameter %s is given %d times; give it once", key, len(list))
		}
		v := list[0]
		switch key {
		case "from":
			q.From = v
		case "to":
			q.To = v
		case "by":
			q.GroupBy = nil
			for d := range strings.SplitSeq(strings.Join(list, ","), ",") {
				if d = strings.TrimSpace(d); d != "" {
					q.GroupBy = append(q.GroupBy, ledger.Dimension(d))
				}
			}
		case "tenant":
			q.Tenant = &v
		case "subject":
			q.Subject = &v
		case "format":
			if format = v; v != "json" && v != "csv" {
				return q, "", server.Invalid("format %q; it is json or csv", v)
			}
		default:
			return q, "", server.Invalid("unknown parameter %q; there are from, to, by, tenant, subject and format", key)
		}
	}
	if q.From == "" {
		to, err := time.Parse(time.DateOnly, q.To)
		if err != nil {
			return q, "", server.Invalid("to: invalid day %q; write it as 2026-11-21", q.To)
		}
		q.From = to.AddDate(0, 0, 1-defaultDays).Format(time.DateOnly)
	}
	return q, format, nil
}

// prefersCSV reports whether CSV is the first supported media type that the client accepts.
//
// Quality values are ignored: browsers and tools list the preferred type first. Wildcards mean JSON, because that is
// the format of programs that accept anything.
func prefersCSV(accept []string) bool {
	for m := range strings.SplitSeq(strings.ToLower(strings.Join(accept, ",")), ",") {
		m, _, _ = strings.Cut(m, ";")
		switch m = strings.TrimSpace(m); {
		case m == "text/csv":
			return true
		case slices.Contains([]string{"application/json", "application/*", "*/*"}, m):
			return false
		}
	}
	return false
}

// outcomes are the outcomes that have columns, in order.
var outcomes = []event.Outcome{event.Completed, event.Failed, event.Cancelled, event.Interrupted}

// writeCSV writes a line for each group, or one line without groups, with a column for each currency.
//
// The columns are: the dimensions, the counts, the tokens, and then one per currency, so amounts in
// different currencies are never added. A group without costs in a currency has an empty cell, which
// spreadsheets don't count as zero. The file is built in memory, so an error does not leave half a file. Amounts are
// decimal numbers with a point and without a currency sign, and durations are in milliseconds.
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
