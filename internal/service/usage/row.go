package usage

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
)

const (
	// Log is the log to which the rows belong. It has no events.
	logID = journal.SystemPrefix + "usage"
	// Prefix begins the keys of all rows. Their values are JSON objects with the keys tenant and subject.
	Prefix = "usage/"
	// DefaultRetention is how long rows are kept: a year and the month in which it is looked back on.
	DefaultRetention = 400 * 24 * time.Hour
	// dayFormat is that of a day: days in order are in order as texts.
	dayFormat = time.DateOnly
)

// Row is what is kept of one turn.
type Row struct {
	Day     string `json:"day"` // of the end, in UTC, such as 2026-11-21
	Turn    string `json:"turn"`
	Agent   string `json:"agent,omitempty"`
	Model   string `json:"model,omitempty"`
	Tenant  string `json:"tenant,omitempty"`
	Subject string `json:"subject,omitempty"` // empty: the operator for itself
	Tokens
	// Reported says that the agent told its usage, be it nothing.
	Reported bool `json:"reported,omitempty"`
	// Cost is known where there is a currency.
	Cost     Amount        `json:"cost,omitzero"`
	Currency string        `json:"currency,omitempty"`
	Outcome  event.Outcome `json:"outcome"`
	Duration int64         `json:"duration"` // from its start to its end, milliseconds; 0 where it never started
}

// Tokens are counted as models do.
type Tokens struct {
	Input      int64 `json:"input"` // without those of the cache
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
	Reasoning  int64 `json:"reasoning"` // among those of the output
}

func (t *Tokens) add(o *Tokens) {
	t.Input += o.Input
	t.Output += o.Output
	t.CacheRead += o.CacheRead
	t.CacheWrite += o.CacheWrite
	t.Reasoning += o.Reasoning
}

// day returns the day of a time in epoch milliseconds.
func day(ms int64) string { return time.UnixMilli(ms).UTC().Format(dayFormat) }

// key orders rows by day and then by subject, so that the days of one subject can be read alone.
func (r *Row) key() string { return subjectPrefix(r.Day, r.Tenant, r.Subject) + r.Turn }

func subjectPrefix(day, tenant, subject string) string {
	sum := sha256.Sum256([]byte(tenant + "\x00" + subject))
	return Prefix + day + "/" + hex.EncodeToString(sum[:8]) + "/"
}

// rowOf reads a row back.
func rowOf(kv journal.KeyValue) (r Row, err error) {
	if err = json.Unmarshal(kv.Value, &r); err != nil {
		return r, fmt.Errorf("usage: row %s: %w", kv.Key, err)
	}
	return r, nil
}

// dayOfKey is the day in a row's key.
func dayOfKey(key string) string {
	day, _, _ := strings.Cut(strings.TrimPrefix(key, Prefix), "/")
	return day
}
