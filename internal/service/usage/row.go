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
	// logID is the id of the log that owns the rows. It has no events.
	logID = journal.SystemPrefix + "usage"
	// Prefix is the prefix of the keys of all rows. Their values are JSON objects with the fields tenant and subject, by which
	// a purge finds them.
	Prefix = "usage/"
	// DefaultRetention is how long rows are kept: a year, and a month to evaluate it.
	DefaultRetention = 400 * 24 * time.Hour
	// dayFormat is the format of days. Days in this format sort in order of time.
	dayFormat = time.DateOnly
)

// Row is the stored usage of one turn.
type Row struct {
	Day     string `json:"day"` // day of the end in UTC, such as 2026-11-21
	Turn    string `json:"turn"`
	Agent   string `json:"agent,omitempty"`
	Model   string `json:"model,omitempty"`
	Tenant  string `json:"tenant,omitempty"`
	Subject string `json:"subject,omitempty"` // empty for the operator's own turns
	Tokens
	// Reported means that the agent reported usage, even if all counts are 0.
	Reported bool `json:"reported,omitempty"`
	// Cost is valid if Currency is set.
	Cost     Amount        `json:"cost,omitzero"`
	Currency string        `json:"currency,omitempty"`
	Outcome  event.Outcome `json:"outcome"`
	Duration int64         `json:"duration"` // from start to end, milliseconds; 0 if the turn never started
}

// Tokens are token counts of a turn or a sum of them.
type Tokens struct {
	Input      int64 `json:"input"` // excludes cache tokens
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
	Reasoning  int64 `json:"reasoning"` // included in Output
}

// add adds the counts of o. They are capped at 1e12 per turn, so a sum can't overflow.
func (t *Tokens) add(o *Tokens) {
	t.Input += o.Input
	t.Output += o.Output
	t.CacheRead += o.CacheRead
	t.CacheWrite += o.CacheWrite
	t.Reasoning += o.Reasoning
}

// day returns the UTC day of a time in epoch milliseconds.
func day(ms int64) string { return time.UnixMilli(ms).UTC().Format(dayFormat) }

// key returns the key of the row. Keys sort by day and then by subject, so the rows of one subject and day are adjacent.
func (r *Row) key() string { return subjectPrefix(r.Day, r.Tenant, r.Subject) + r.Turn }

func subjectPrefix(day, tenant, subject string) string {
	sum := sha256.Sum256([]byte(tenant + "\x00" + subject))
	return Prefix + day + "/" + hex.EncodeToString(sum[:8]) + "/"
}

// rowOf decodes a stored row.
func rowOf(kv journal.KeyValue) (r Row, err error) {
	if err = json.Unmarshal(kv.Value, &r); err != nil {
		return r, fmt.Errorf("usage: row %s: %w", kv.Key, err)
	}
	return r, nil
}

// dayOfKey returns the day in a row's key.
func dayOfKey(key string) string {
	day, _, _ := strings.Cut(strings.TrimPrefix(key, Prefix), "/")
	return day
}
