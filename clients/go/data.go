package leat

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// AuditEntry is an entry of the audit log. docs/data.md describes its JSON.
type AuditEntry struct {
	Seq    int64  `json:"seq"`
	At     int64  `json:"at"` // epoch milliseconds
	Action string `json:"action"`
	Actor  struct {
		Admin   bool   `json:"admin,omitempty"`
		Acting  bool   `json:"acting,omitempty"` // the holder of the API token acted for the subject
		Tenant  string `json:"tenant,omitempty"`
		Subject string `json:"subject,omitempty"`
		Gateway string `json:"gateway,omitempty"` // the component, if the gateway itself acted
		From    string `json:"from,omitempty"`    // address
	} `json:"by"`
	Conversation string         `json:"conversation,omitempty"`
	Turn         string         `json:"turn,omitempty"`
	Message      string         `json:"message,omitempty"`
	Tenant       string         `json:"tenant,omitempty"`
	Subject      string         `json:"subject,omitempty"`
	Result       string         `json:"result,omitempty"`
	Effect       int64          `json:"effect,omitempty"`
	Counts       map[string]int `json:"counts,omitempty"`
	Digest       string         `json:"digest,omitempty"`
	Plugin       string         `json:"plugin,omitempty"`
	Blanked      bool           `json:"blanked,omitempty"`

	Raw json.RawMessage `json:"-"` // the received JSON
}

// AuditOptions select entries of the audit log.
type AuditOptions struct {
	After           int64  // seq
	Since           string // a time in RFC 3339, or a duration before now such as 24h
	Tenant, Subject string // entries by and about this user
	Conversation    string
	// Follow waits for new entries after the stored ones, until the context is done or the connection is lost. Audit doesn't reconnect: call
	// it again with After set to the last entry's Seq.
	Follow bool
}

// Audit calls f with entries of the audit log in ascending order of Seq. It returns the first error of f, or nil if that is
// [ErrStop]. An entry is valid after f returns. Only the holder of the gateway's token may call Audit and the methods for legal
// holds, purge, retention and import.
func (c *Client) Audit(ctx context.Context, o AuditOptions, f func(*AuditEntry) error) error {
	q := query(map[string]string{"since": o.Since, "tenant": o.Tenant, "subject": o.Subject, "conversation": o.Conversation})
	if o.After > 0 {
		q.Set("after", fmt.Sprint(o.After))
	}
	if o.Follow {
		q.Set("follow", "true")
	}
	req, err := c.request(ctx, http.MethodGet, "/api/audit?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	res, err := c.client().Do(req)
	if err != nil {
		return fmt.Errorf("leat: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errorOf(res)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, maxErrorBody)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		e := &AuditEntry{Raw: append(json.RawMessage(nil), lines.Bytes()...)}
		if err := json.Unmarshal(e.Raw, e); err != nil {
			return fmt.Errorf("%w: audit entry: %w", ErrProtocol, err)
		}
		if err := f(e); errors.Is(err, ErrStop) {
			return nil
		} else if err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("leat: audit log interrupted: %w", err)
	}
	return nil
}

// Hold is a legal hold: it prevents the removal of a conversation, or of all data of a subject.
type Hold struct {
	Conversation string `json:"conversation,omitempty"`
	Tenant       string `json:"tenant,omitempty"`
	Subject      string `json:"subject,omitempty"`
	Since        int64  `json:"since,omitempty"` // epoch milliseconds
}

// Hold places a legal hold. If it exists already, Hold returns the existing one unchanged.
func (c *Client) Hold(ctx context.Context, h Hold) (Hold, error) {
	h.Since = 0
	var result Hold
	err := c.call(ctx, true, http.MethodPost, "/api/holds", nil, h, &result)
	return result, err
}

// ReleaseHold removes a legal hold.
func (c *Client) ReleaseHold(ctx context.Context, h Hold) error {
	q := query(map[string]string{"conversation": h.Conversation, "tenant": h.Tenant, "subject": h.Subject})
	return c.call(ctx, false, http.MethodDelete, "/api/holds?"+q.Encode(), nil, nil, nil)
}

// Holds returns all legal holds.
func (c *Client) Holds(ctx context.Context) ([]Hold, error) {
	var result struct {
		Holds []Hold `json:"holds"`
	}
	err := c.call(ctx, true, http.MethodGet, "/api/holds", nil, nil, &result)
	return result.Holds, err
}

// Purged counts what a purge has removed, or would remove in a dry run.
type Purged struct {
	DryRun              bool           `json:"dry_run,omitempty"`
	Conversations       int            `json:"conversations"`
	SharedConversations int            `json:"shared"`         // of other users, that were shared with the subject
	Messages            int            `json:"messages"`       // of the subject in conversations of other users
	Keys                map[string]int `json:"keys,omitempty"` // stored keys outside conversations, by kind
	Audit               int            `json:"audit"`          // entries of the audit log that lost their data
}

// Purge removes all stored data of a subject. It may take minutes. If it is interrupted, it continues at the gateway's next start, or when
// it is called again.
func (c *Client) Purge(ctx context.Context, tenant, subject string, dryRun bool) (Purged, error) {
	q := query(map[string]string{"tenant": tenant})
	if dryRun {
		q.Set("dry_run", "true")
	}
	var result Purged
	err := c.callWithoutLimit(ctx, http.MethodDelete, "/api/subjects/"+url.PathEscape(subject)+"?"+q.Encode(), nil, &result)
	return result, err
}

// Expired counts what retention has deleted, or would delete in a dry run.
type Expired struct {
	DryRun        bool     `json:"dry_run,omitempty"`
	Deleted       int      `json:"deleted"`
	LegalHolds    int      `json:"held"`
	Audit         int      `json:"audit"`
	Conversations []string `json:"conversations,omitempty"` // the first thousand ids
}

// Expire applies the retention rules now instead of at the next scheduled time.
func (c *Client) Expire(ctx context.Context, dryRun bool) (Expired, error) {
	method := http.MethodPost
	if dryRun {
		method = http.MethodGet
	}
	var result Expired
	err := c.callWithoutLimit(ctx, method, "/api/retention", nil, &result)
	return result, err
}

// callWithoutLimit sends a request that may take longer than callLimit. It is sent once: only ctx limits it, and a failure isn't retried.
func (c *Client) callWithoutLimit(ctx context.Context, method, path string, body []byte, result any) error {
	req, err := c.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	return c.answer(req, result)
}

// answer sends a request once, without a timeout, and decodes its response.
func (c *Client) answer(req *http.Request, result any) error {
	res, err := c.client().Do(req)
	if err != nil {
		return fmt.Errorf("leat: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return errorOf(res)
	}
	if err := json.NewDecoder(res.Body).Decode(result); err != nil {
		return fmt.Errorf("%w: %s %s: %w", ErrProtocol, req.Method, req.URL.Path, err)
	}
	return nil
}

// Export writes all stored data of a subject to w and returns its length in bytes. docs/data.md describes the JSON lines. A user may export
// only its own data. After an error, the output is incomplete.
func (c *Client) Export(ctx context.Context, tenant, subject string, w io.Writer) (int64, error) {
	path := "/api/subjects/" + url.PathEscape(subject) + "/export"
	if tenant != "" {
		path += "?tenant=" + url.QueryEscape(tenant)
	}
	return c.download(ctx, http.MethodGet, path, "export", w)
}

// download writes the resource at a path to w, without a timeout, and returns its length in bytes. name names the resource in errors. A
// response without Content-Length that ends early is an error, because the gateway then breaks off the chunked body.
func (c *Client) download(ctx context.Context, method, path, name string, w io.Writer) (int64, error) {
	req, err := c.request(ctx, method, path, nil)
	if err != nil {
		return 0, err
	}
	res, err := c.client().Do(req)
	if err != nil {
		return 0, fmt.Errorf("leat: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return 0, errorOf(res)
	}
	n, err := io.Copy(w, res.Body)
	if err != nil {
		return n, fmt.Errorf("leat: %s interrupted after %d bytes: %w", name, n, err)
	}
	return n, nil
}

// Imported is the result of an import.
type Imported struct {
	Imported             int `json:"imported"`
	Unchanged            int `json:"unchanged"` // conversations that an earlier run of the same import created
	RefusedConversations int `json:"refused"`
	Refusals             []struct {
		Conversation string `json:"conversation"`
		Reason       string `json:"reason"`
		Message      string `json:"message"`
	} `json:"refusals,omitempty"` // the first thousand
	Skipped int `json:"skipped,omitempty"` // lines with data that can't be imported
}

// Import creates the conversations of an export. It may be repeated: existing conversations stay unchanged.
func (c *Client) Import(ctx context.Context, r io.Reader) (Imported, error) {
	var result Imported
	req, err := c.request(ctx, http.MethodPost, "/api/import", nil)
	if err != nil {
		return result, err
	}
	req.Body, req.ContentLength = io.NopCloser(r), -1
	req.Header.Set("Content-Type", "application/x-ndjson")
	err = c.answer(req, &result)
	return result, err
}

// Backup writes a consistent copy of the gateway's whole store to w and returns its length in bytes. Only the holder of the gateway's
// token may call it. After an error, discard what was written.
func (c *Client) Backup(ctx context.Context, w io.Writer) (int64, error) {
	return c.download(ctx, http.MethodPost, "/api/backup", "backup", w)
}
