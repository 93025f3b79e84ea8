package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"os"
	"syscall"
)

// Advice returns what to do about an upstream that can't be reached, by the cause of the error.
func Advice(err error) string {
	// The failures of agents keep the error of their transport apart.
	if failure, ok := errors.AsType[interface {
		error
		Cause() error
	}](err); ok && failure.Cause() != nil {
		err = failure.Cause()
	}
	var (
		dns         *net.DNSError
		certificate *tls.CertificateVerificationError
		unknown     x509.UnknownAuthorityError
		otherName   x509.HostnameError
		invalid     x509.CertificateInvalidError
		notTLS      tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "correct the host name in the URL under agents; no such name exists"
	case errors.As(err, &dns):
		return "check this machine's name server, which doesn't answer"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "start the server; nothing listens at its address. If it runs elsewhere, correct the URL under agents"
	case errors.As(err, &otherName):
		return "use the host name of the certificate in the URL under agents"
	case errors.As(err, &unknown):
		return "make this machine trust the authority of the certificate, for example with SSL_CERT_FILE"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "renew the server's certificate, or set this machine's clock"
	case errors.As(err, &certificate), errors.As(err, &invalid):
		return "replace the server's certificate, which is not valid"
	case errors.As(err, &notTLS), errors.Is(err, http.ErrSchemeMismatch):
		return "write http:// in the URL under agents; the server doesn't use TLS"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "check the network and the firewalls between this machine and the server"
	}
	return "start it, or correct its configuration under agents"
}
