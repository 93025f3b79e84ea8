package call

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// EncodedError says that an answer has an encoding that can't be decoded.
type EncodedError struct{ Encoding string }

func (e *EncodedError) Error() string {
	return fmt.Sprintf("the answer is encoded (Content-Encoding %q); send it as it is or with gzip", e.Encoding)
}

// Decoding is a transport that decodes gzip, which some servers and proxies send without being asked. Any other encoding fails
// the request with an [*EncodedError].
type Decoding struct{ *http.Transport }

// RoundTrip implements [http.RoundTripper].
func (d Decoding) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := d.Transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	switch name := strings.ToLower(strings.TrimSpace(res.Header.Get("Content-Encoding"))); name {
	case "", "identity":
	case "gzip", "x-gzip":
		res.Body = &gunzip{body: res.Body}
		res.Header.Del("Content-Encoding")
		res.Header.Del("Content-Length")
		res.ContentLength, res.Uncompressed = -1, true
	default:
		_ = res.Body.Close() // the encoding is the error
		return nil, &EncodedError{name}
	}
	return res, nil
}

// gunzip decodes a body. The head of the gzip stream is read with the first bytes, since it may come much later than that of the answer.
type gunzip struct {
	body io.ReadCloser
	zip  *gzip.Reader
	err  error // of the head
}

func (g *gunzip) Read(p []byte) (int, error) {
	if g.zip == nil && g.err == nil {
		if g.zip, g.err = gzip.NewReader(g.body); g.err == io.EOF {
			return 0, g.err // an empty body, as of an answer without content
		}
	}
	if g.err != nil {
		return 0, fmt.Errorf("decode gzip: %w", g.err)
	}
	return g.zip.Read(p)
}

func (g *gunzip) Close() error { return g.body.Close() }
