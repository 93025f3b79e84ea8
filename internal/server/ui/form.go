package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// form is the content of a file in a content coding, such as gzip; the coding is empty for the content as it is.
type form struct {
	coding  string
	content []byte
	// The hash of the content, so a browser that has the file gets 304.
	tag string
}

func newForm(coding string, content []byte) form {
	sum := sha256.Sum256(content)
	return form{coding, content, `"` + hex.EncodeToString(sum[:8]) + `"`}
}

// choose returns the form for a client by its Accept-Encoding headers.
func (f *file) choose(accept []string) (form, error) {
	i := slices.IndexFunc(f.forms, func(o form) bool { return o.coding == "" || accepts(accept, o.coding) })
	if i >= 0 {
		return f.forms[i], nil
	}
	// Only programs accept no coding, so the decompressed content isn't kept.
	z, err := gzip.NewReader(bytes.NewReader(f.forms[len(f.forms)-1].content))
	if err != nil {
		return form{}, fmt.Errorf("decompress: %w", err)
	}
	content, err := io.ReadAll(z)
	if err != nil {
		return form{}, fmt.Errorf("decompress: %w", err)
	}
	return newForm("", content), nil
}

// accepts reports whether Accept-Encoding headers name a coding, and don't refuse it with the weight 0 (RFC 9110, section 12.5.3).
func accepts(headers []string, coding string) bool {
	for _, h := range headers {
		for item := range strings.SplitSeq(h, ",") {
			name, weight, hasWeight := strings.Cut(item, ";")
			if !strings.EqualFold(strings.TrimSpace(name), coding) {
				continue
			}
			q, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(weight), "q="), 64)
			return !hasWeight || err == nil && q > 0
		}
	}
	return false
}
