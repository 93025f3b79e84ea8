package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/textproto"
	"strings"

	"github.com/leat-dev/leat/internal/base/outbound"
)

// RequestError returns the error of an HTTP request without an answer as [Chat] describes it: until a connection is made, nothing was
// sent. The error doesn't contain the address, in which some platforms have secrets.
func RequestError(ctx context.Context, err error) error {
	outcome := ErrUnknown
	if operation, ok := errors.AsType[*net.OpError](err); ok && operation.Op == "dial" {
		outcome = ErrUnsent
	}
	if ctx.Err() != nil && outcome == ErrUnsent {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w (%w)", outcome, outbound.Reason(err))
}

// Exchange sends a request and reads the whole answer. Without an answer, the error is that of [RequestError].
func Exchange(ctx context.Context, client *http.Client, r *http.Request) (*http.Response, []byte, error) {
	response, err := client.Do(r)
	if err != nil {
		return nil, nil, RequestError(ctx, err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, nil, RequestError(ctx, err)
	}
	return response, raw, nil
}

// DecodeResult decodes the result of a request, unless result is nil. name says in errors what it is.
func DecodeResult(raw []byte, result any, name string) error {
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(raw, result); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Download sends a request for a file and returns its content. Errors begin with the platform; refuse makes that of an answer which
// isn't a success.
func Download(ctx context.Context, client *http.Client, r *http.Request, platform string, refuse func(*http.Response) error) (io.ReadCloser, error) {
	response, err := client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%s: download: %w", platform, RequestError(ctx, err))
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		return nil, refuse(response)
	}
	return response.Body, nil
}

// Form returns a form with a file, and its content type. The whole form is in memory, so that its request has a length and can be
// repeated. Fields come before the file, whose field is named.
func Form(fields map[string]string, name string, f File) (form []byte, contentType string, err error) {
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for key, value := range fields {
		if err := w.WriteField(key, value); err != nil {
			return nil, "", err
		}
	}
	header := textproto.MIMEHeader{"Content-Disposition": {multipart.FileContentDisposition(name, f.Name)}}
	header.Set("Content-Type", "application/octet-stream")
	if f.Type != "" && !strings.ContainsAny(f.Type, "\r\n") {
		header.Set("Content-Type", f.Type)
	}
	part, err := w.CreatePart(header)
	if err != nil {
		return nil, "", err
	}
	if _, err := part.Write(f.Content); err != nil {
		return nil, "", err
	}
	err = w.Close()
	return body.Bytes(), w.FormDataContentType(), err
}
