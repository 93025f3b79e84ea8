// Reading and writing JSON bodies, within limits, and with errors that name the position.

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

// Respond ends a handler that has called the gateway: it returns the call's error, or else responds with 200 and v as JSON.
func Respond(w http.ResponseWriter, v any, err error) error {
	if err == nil {
		WriteJSON(w, http.StatusOK, v)
	}
	return err
}

// WriteJSON responds with a JSON value. If v can't be marshalled, which is a bug, it responds with 500.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	b, err := Marshal(v)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"error":"internal error","reason":"internal"}`)
	}
	WriteRawJSON(w, status, append(b, '\n'))
}

// Marshal is json.Marshal without the escapes for <, > and &. Responses and frames are never embedded in HTML, and agents' texts
// are full of these characters, each of which would take six bytes.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
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

// decode reads one JSON value. With strict, unknown keys are errors, so that a misspelt key is not ignored.
func decode(r *http.Request, v any, strict bool) error {
	b, err := ReadBody(r)
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return nil
	}
	return Unmarshal(b, v, strict)
}

// ReadBody reads the whole body, which the route's MaxBody limits. Its errors are for [Describe], as those of [Decode].
func ReadBody(r *http.Request) ([]byte, error) {
	b, err := io.ReadAll(r.Body)
	if _, isTooLarge := errors.AsType[*http.MaxBytesError](err); err != nil && !isTooLarge {
		err = Invalid("the body is incomplete; send it again")
	}
	return b, err
}

// Unmarshal decodes one JSON value like [Decode], for frames of sockets. It refuses values that encoding/json would silently
// repair or that are dangerous in JavaScript: invalid UTF-8, lone surrogates, and keys named __proto__.
func Unmarshal(b []byte, v any, strict bool) error {
	if !utf8.Valid(b) {
		return Invalid("the JSON is not UTF-8")
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
		return Invalid("%s", jsonProblem(err))
	}
	if _, err := dec.Token(); err != io.EOF {
		return Invalid("the body has data after the JSON value")
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
//
// encoding/json would turn a lone surrogate into U+FFFD, and the log would then differ from what the
// client sent. Only escapes need a check, because raw surrogates are not valid UTF-8.
func checkSurrogates(b []byte) error {
	lone := Invalid("the JSON has a lone surrogate")
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
//
// Pages copy objects of the log into JavaScript objects, where such a key would change the prototype. The
// fast path skips documents that can't contain the key, neither plainly nor with an escaped underscore.
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
				return Invalid("the key __proto__ is not allowed")
			}
			stack[top].key = false
			continue
		}
		if top >= 0 && stack[top].object {
			stack[top].key = true
		}
	}
}
