package whatsapp

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/leat-dev/leat/internal/channel"
)

// maxWebhook limits the body of a request to the webhook, in bytes. The platform sends up to 3 MB.
const maxWebhook = 4 << 20

// ServeWebhook implements [channel.WebhookChannel].
func (n *number) ServeWebhook(w http.ResponseWriter, r *http.Request, inbox channel.Inbox) {
	switch r.Method {
	case http.MethodGet:
		n.verify(w, r)
	case http.MethodPost:
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxWebhook))
		switch {
		case err != nil:
			http.Error(w, "the body can't be read", http.StatusBadRequest)
		case !n.isSigned(r, body):
			http.Error(w, "invalid signature", http.StatusUnauthorized)
		default:
			n.receive(r.Context(), w, body, inbox)
		}
	default:
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	}
}

// verify answers the request that sets up the webhook.
func (n *number) verify(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("hub.mode") != "subscribe" || subtle.ConstantTimeCompare([]byte(q.Get("hub.verify_token")), []byte(n.options.VerifyToken)) != 1 {
		http.Error(w, "invalid verify token", http.StatusForbidden)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = io.WriteString(w, q.Get("hub.challenge")) // the platform has gone
}

// isSigned checks the signature of a request. It is that of the body's bytes as they were sent.
func (n *number) isSigned(r *http.Request, body []byte) bool {
	digest, ok := strings.CutPrefix(r.Header.Get("X-Hub-Signature-256"), "sha256=")
	signature, err := hex.DecodeString(digest)
	mac := hmac.New(sha256.New, []byte(n.options.AppSecret))
	mac.Write(body)
	return ok && err == nil && hmac.Equal(signature, mac.Sum(nil))
}

// receive passes the messages of a request to the inbox and confirms the request. If one can't be stored, the platform sends all
// of them again; the inbox recognises those that it has.
func (n *number) receive(ctx context.Context, w http.ResponseWriter, body []byte, inbox channel.Inbox) {
	var e envelope
	if err := json.Unmarshal(body, &e); err != nil {
		// The platform would send it again for days.
		n.log.Warn("webhook of WhatsApp could not be read", "error", err)
		return
	}
	for _, v := range e.values() {
		if v.Metadata.Number != n.options.Number {
			continue // another number of the same app
		}
		for i := range v.Statuses {
			n.reportStatus(ctx, &v.Statuses[i], inbox)
		}
		for i := range v.Messages {
			m, ok := v.Messages[i].inbound(v.Contacts)
			if !ok {
				continue
			}
			if err := inbox.Receive(ctx, m); err != nil {
				n.log.Error("message of WhatsApp could not be stored; the platform sends it again", "error", err)
				http.Error(w, "the message could not be stored", http.StatusServiceUnavailable)
				return
			}
			select {
			case n.receipts <- m.ID:
			default: // too many wait; a receipt is not necessary
			}
		}
	}
}

// reportStatus reports a message that the platform has accepted but can't deliver. The error names neither the person nor the message,
// whose id contains the person's number.
func (n *number) reportStatus(ctx context.Context, s *status, inbox channel.Inbox) {
	if s.Status != "failed" {
		return
	}
	var err error = &apiError{Status: http.StatusOK, Message: "unknown reason"}
	if len(s.Errors) > 0 {
		s.Errors[0].Status = http.StatusOK
		err = &s.Errors[0]
	}
	if refusal(err).Code == codeWindow {
		err = fmt.Errorf("%w: %w", errWindow, err)
	}
	if reporter, ok := inbox.(channel.FailureInbox); ok {
		reporter.Fail(ctx, cmp.Or(s.Recipient, s.RecipientUser), fmt.Errorf("whatsapp: an accepted message was not delivered: %w", err))
		return
	}
	n.log.Error("WhatsApp could not deliver a message that it had accepted", "error", err)
}
