package sqlite

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"

	"github.com/leat-dev/leat/internal/store/journal/internal/compact"
)

// resealAll converts the texts of version 3, which were encrypted (AES-CTR) without authentication, to the form of [secret]. It
// holds one page of rows in memory. A chunk that can't be decoded was already damaged: it keeps its old form, so that reading it
// still fails. Rows of deleted conversations, which have no keys, stay unchanged.
func resealAll(c *conn) error {
	events := func(text []byte) bool {
		_, err := compact.Decode(nil, text, 0)
		return err == nil
	}
	for _, t := range []struct {
		rows, update string // columns: conversation number, blob, first, last, name, then those of the primary key
		keys         int    // number of primary key columns
		kind         byte
		good         func([]byte) bool
	}{
		{
			"SELECT conversation, events, first, last, '', row FROM live WHERE row > ? ORDER BY row LIMIT 64",
			"UPDATE live SET events = ? WHERE row = ?", 1, inLive, events,
		},
		{
			"SELECT conversation, events, first, last, '', conversation, last FROM settled WHERE (conversation, last) > (?, ?) ORDER BY conversation, last LIMIT 64",
			"UPDATE settled SET events = ? WHERE conversation = ? AND last = ?", 2, inCompacted, events,
		},
		{
			"SELECT conversation, trace, first, 0, turn, conversation, turn, first FROM traces WHERE (conversation, turn, first) > (?, ?, ?) ORDER BY conversation, turn, first LIMIT 64",
			"UPDATE traces SET trace = ? WHERE conversation = ? AND turn = ? AND first = ?", 3, inTrace, nil,
		},
		{
			"SELECT conversation, value, 0, 0, key, key FROM kv WHERE key > ? ORDER BY key LIMIT 64",
			"UPDATE kv SET value = ? WHERE key = ?", 1, inKey, nil,
		},
		{
			"SELECT n, summary, 0, 0, '', n FROM conversations WHERE n > ? ORDER BY n LIMIT 64",
			"UPDATE conversations SET summary = ? WHERE n = ?", 1, inSummary, nil,
		},
	} {
		after := make([]any, t.keys)
		for i := range after {
			after[i] = 0 // below all numbers and texts
		}
		if t.kind == inKey {
			after[0] = ""
		}
		for {
			var page []row
			if err := c.forEach(t.rows, func(r row) error { page = append(page, append(row(nil), r...)); return nil }, after...); err != nil {
				return err
			}
			for _, r := range page {
				for i := range after {
					after[i] = r[5+i]
				}
				blob, err := reseal(c, r, t.kind, t.good)
				if err == nil && blob != nil {
					err = c.exec(t.update, append([]any{blob}, after...)...)
				}
				if err != nil {
					return err
				}
			}
			if len(page) == 0 {
				break
			}
		}
	}
	return c.exec("UPDATE conversations SET size = ifnull((SELECT sum(length(events)) FROM settled WHERE conversation = n AND last > trimmed), 0)")
}

// reseal returns the new form of a row's text, or nil if it keeps the old one. The row's columns are those of resealAll's
// queries.
func reseal(c *conn, r row, kind byte, good func([]byte) bool) ([]byte, error) {
	n, b := r.int(0), r.blob(1)
	key, err := c.queryRow("SELECT key FROM secrets WHERE n = ?", n)
	if err != nil || key == nil || len(b) < aes.BlockSize {
		return nil, err
	}
	s, err := secretOf(n, key.blob(0))
	if err != nil {
		if errors.Is(err, errNoKey) {
			return nil, nil
		}
		return nil, err
	}
	block, err := aes.NewCipher(key.blob(0))
	if err != nil {
		return nil, err
	}
	text := b[aes.BlockSize:]
	cipher.NewCTR(block, b[:aes.BlockSize]).XORKeyStream(text, text)
	if good != nil && !good(text) {
		return nil, nil
	}
	return s.seal(nil, place{kind: kind, firstSeq: r.int(2), lastSeq: r.int(3), name: r.text(4)}, text), nil
}
