package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"
)

// WriteJSON responds with a JSON value. If v can't be marshalled, which is a bug, it responds with 500.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		status = http.StatusInternalServerError
		b.Reset()
		b.WriteString(`{"error":"internal error","reason":"internal"}` + "\n")
	}
	WriteRawJSON(w, status, b.Bytes())
}

// WriteRawJSON responds with encoded JSON.
func WriteRawJSON(w http.ResponseWriter, status int, b []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(b)))
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	w.WriteHeader(status)
	_, _ = w.Write(b) // best effort: the client may have disconnected
}

// Decode decodes the body as one JSON value. Unknown keys are ignored, and an empty body is an empty object. Its errors are for
// [Describe]: 400 for invalid JSON, 413 above the route's limit.
func Decode(r *http.Request, v any) error { return decode(r, v, false) }

// DecodeStrict is Decode, but refuses unknown keys.
func DecodeStrict(r *http.Request, v any) error { return decode(r, v, true) }

func decode(r *http.Request, v any, strict bool) error {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return err
		}
		return Errorf(http.StatusBadRequest, ReasonInvalid, "the body is incomplete; send it again")
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return nil
	}
	return Unmarshal(b, v, strict)
}

// Unmarshal decodes one JSON value like [Decode], for frames of sockets. It refuses values that encoding/json would silently
// repair or that are dangerous in JavaScript: invalid UTF-8, lone surrogates, and keys named __proto__.
func Unmarshal(b []byte, v any, strict bool) error {
	if !utf8.Valid(b) {
		return Errorf(http.StatusBadRequest, ReasonInvalid, "the JSON is not UTF-8")
	}
	if err := checkSurrogates(b); err != nil {
		return err
	}
	if err := checkKeys(b); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	if strict {
		dec.DisallowUnknownFields()
	}
	if err := dec.Decode(v); err != nil {
		return Errorf(http.StatusBadRequest, ReasonInvalid, "%s", jsonProblem(err))
	}
	if _, err := dec.Token(); err != io.EOF {
		return Errorf(http.StatusBadRequest, ReasonInvalid, "the body has data after the JSON value")
	}
	return nil
}

// jsonProblem describes a syntax error without the names of Go types.
func jsonProblem(err error) string {
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &kind) && kind.Field != "":
		return fmt.Sprintf("%s can't be a JSON %s", kind.Field, kind.Value)
	case errors.As(err, &kind):
		return fmt.Sprintf("a JSON object is needed, not a %s", kind.Value)
	case errors.As(err, &syntax):
		return fmt.Sprintf("broken JSON at byte %d: %s", syntax.Offset, syntax.Error())
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "broken JSON: it ends too early"
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// checkSurrogates refuses an escaped lone surrogate, which encoding/json would replace.
func checkSurrogates(b []byte) error {
	lone := Errorf(http.StatusBadRequest, ReasonInvalid, "the JSON has a lone surrogate")
	for i := bytes.IndexByte(b, '\\'); i >= 0 && i+1 < len(b); {
		if b[i+1] != 'u' {
			i += 2 // an escaped character, possibly a backslash
		} else {
			switch u := escape(b[i:]); {
			case u >= 0xd800 && u < 0xdc00:
				if low := escape(b[min(i+6, len(b)):]); low < 0xdc00 || low > 0xdfff {
					return lone
				}
				i += 12
			case u >= 0xdc00 && u <= 0xdfff:
				return lone
			default:
				i += 6
			}
		}
		if i >= len(b) {
			break
		}
		n := bytes.IndexByte(b[i:], '\\')
		if n < 0 {
			break
		}
		i += n
	}
	return nil
}

// escape returns the code unit of a \uXXXX at the start of b, or -1.
func escape(b []byte) int {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	u, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return int(u)
}

// checkKeys refuses objects with a key __proto__ at any depth. It is allowed in texts.
func checkKeys(b []byte) error {
	if !bytes.Contains(b, []byte("__proto__")) && !bytes.Contains(b, []byte(`\u005`)) {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	type level struct{ object, key bool }
	var stack []level
	for {
		t, err := dec.Token()
		if err != nil {
			return nil // the end, or an error that Decode describes better
		}
		top := len(stack) - 1
		if d, ok := t.(json.Delim); ok {
			switch d {
			case '{', '[':
				stack = append(stack, level{d == '{', d == '{'})
				continue
			default:
				stack = stack[:top]
				top--
			}
		} else if top >= 0 && stack[top].key {
			if t == "__proto__" {
				return Errorf(http.StatusBadRequest, ReasonInvalid, "the key __proto__ is not allowed")
			}
			stack[top].key = false
			continue
		}
		if top >= 0 && stack[top].object {
			stack[top].key = true
		}
	}
}
