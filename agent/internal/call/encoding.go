package call

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// EncodedError is returned for a response with an unsupported Content-Encoding.
type EncodedError struct{ Encoding string }

func (e *EncodedError) Error() string {
	return fmt.Sprintf("the response has the Content-Encoding %q; send it without one or with gzip", e.Encoding)
}

// Decoding is a transport that decodes gzip. [Client] doesn't request compression, but some servers and proxies compress anyway. Any
// other encoding fails the request with an [*EncodedError].
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

// gunzip decodes a body. It reads the gzip header in the first Read and not when the response arrives: a server may send the HTTP header
// long before the first byte of the body, and reading then would block.
type gunzip struct {
	body io.ReadCloser
	zip  *gzip.Reader
	err  error // of the gzip header; returned by every Read
}

// Read begins the decompression at the first read, because the header of gzip is read from the body then: opening it earlier would
// wait for the first bytes of a stream.
func (g *gunzip) Read(p []byte) (int, error) {
	if g.zip == nil && g.err == nil {
		if g.zip, g.err = gzip.NewReader(g.body); g.err == io.EOF {
			return 0, g.err // an empty body is valid, such as that of a 204
		}
	}
	if g.err != nil {
		return 0, fmt.Errorf("decode gzip: %w", g.err)
	}
	return g.zip.Read(p)
}

func (g *gunzip) Close() error { return g.body.Close() }
