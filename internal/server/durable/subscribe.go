// Subscriptions, below the path that the protocol reserves for them.

package durable

import (
	"errors"
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/streams"
	"github.com/leat-dev/leat/internal/server"
)

// controlRoot is the path of what isn't a stream. Stored streams can't have a path below it.
//
// The routes of users need their credentials. Workers may be programs that have none: they get a token with each wake, which is valid
// for that wake alone. Wrong tokens of workers aren't counted as attempts to guess a user's, because they can't be guessed, and a
// worker that was replaced sends its old one for a while.
const controlRoot = root + "__ds/"

// subscriptionStatus are the statuses of the protocol's codes. A code that is missing has 409.
var subscriptionStatus = map[string]int{
	streams.CodeInvalid:      http.StatusBadRequest,
	streams.CodeURL:          http.StatusBadRequest,
	streams.CodeNotFound:     http.StatusNotFound,
	streams.CodeInvalidToken: http.StatusUnauthorized,
}

// subscribed makes a handler of one that may return errors with codes, which are in the body.
func subscribed(h server.Handler) server.Handler {
	return secured(func(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
		err := h(w, r, p)
		var coded *streams.SubscriptionError
		if !errors.As(err, &coded) {
			return explain(err)
		}
		status, ok := subscriptionStatus[coded.Code]
		if !ok {
			status = http.StatusConflict
		}
		server.WriteJSON(w, status, map[string]any{"error": codedError{coded.Code, coded.Message, coded.Holder, coded.Generation}})
		return nil
	})
}

// codedError is the body of an error.
type codedError struct {
	Code       string `json:"code"`
	Message    string `json:"message"`
	Holder     string `json:"current_holder,omitempty"`
	Generation int64  `json:"generation,omitempty"`
}

// The structs below are the JSON of the protocol's section 6. Requests are read with unknown keys allowed, as newer clients send some.

// subscriptionBody is a subscription in requests and responses. The protocol writes names with underscores here.
type subscriptionBody struct {
	ID             string       `json:"id,omitempty"`
	SubscriptionID string       `json:"subscription_id,omitempty"`
	Type           string       `json:"type"`
	Pattern        string       `json:"pattern,omitempty"`
	Streams        []linkBody   `json:"streams"`
	Webhook        *webhookBody `json:"webhook,omitempty"`
	WakeStream     string       `json:"wake_stream,omitempty"`
	LeaseMillis    int64        `json:"lease_ttl_ms"`
	Created        string       `json:"created_at,omitempty"`
	Status         string       `json:"status,omitempty"`
	Description    string       `json:"description,omitempty"`
}

// linkBody is a stream of a subscription.
type linkBody struct {
	Path     string `json:"path"`
	LinkType string `json:"link_type"`
	Acked    string `json:"acked_offset"`
}

// webhookBody is where a subscription sends its wakes, and how receivers check their signatures.
type webhookBody struct {
	URL     string       `json:"url"`
	Signing *signingBody `json:"signing,omitempty"`
}

// signingBody names the key of signatures.
type signingBody struct {
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid"`
	Keys      string `json:"jwks_url"`
}

// respondSubscription responds with a subscription.
func (s *surface) respondSubscription(w http.ResponseWriter, r *http.Request, status int, sub *streams.Subscription) error {
	body := subscriptionBody{
		ID: sub.ID, SubscriptionID: sub.ID, Type: sub.Plan.Type, Pattern: sub.Plan.Pattern, Streams: []linkBody{}, WakeStream: sub.Plan.Wake,
		LeaseMillis: sub.Plan.LeaseMillis, Created: sub.Created.UTC().Format(time.RFC3339Nano), Status: "active", Description: sub.Plan.Description,
	}
	if sub.IsFailed {
		body.Status = "failed"
	}
	for i := range sub.Links {
		l := &sub.Links[i]
		body.Streams = append(body.Streams, linkBody{l.Path, l.LinkType(), l.Acked})
	}
	if sub.Plan.URL != "" {
		id, _, err := s.store.PublicKey(r.Context())
		if err != nil {
			return err
		}
		body.Webhook = &webhookBody{sub.Plan.URL, &signingBody{"ed25519", id, s.srv.AbsoluteURL(r, controlRoot+"jwks.json")}}
	}
	server.WriteJSON(w, status, body)
	return nil
}

// subscribe creates a subscription.
func (s *surface) subscribe(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var body struct {
		Type    string   `json:"type"`
		Pattern string   `json:"pattern"`
		Streams []string `json:"streams"`
		Webhook struct {
			URL string `json:"url"`
		} `json:"webhook"`
		WakeStream  string `json:"wake_stream"`
		LeaseMillis int64  `json:"lease_ttl_ms"`
		Description string `json:"description"`
	}
	if err := server.Decode(r, &body); err != nil {
		return err
	}
	ctx, cancel := server.CommandContext(r.Context())
	defer cancel()
	sub, isCreated, err := s.store.Subscribe(ctx, p, r.PathValue("subscription"), streams.Plan{
		Type: body.Type, Pattern: body.Pattern, Streams: body.Streams, URL: body.Webhook.URL, Wake: body.WakeStream,
		LeaseMillis: body.LeaseMillis, Description: body.Description,
	}, s.srv.AbsoluteURL(r, root))
	if err != nil {
		return err
	}
	status := http.StatusOK
	if isCreated {
		status = http.StatusCreated
	}
	return s.respondSubscription(w, r, status, &sub)
}

// subscription responds with a subscription.
func (s *surface) subscription(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	sub, err := s.store.Subscription(r.Context(), p, r.PathValue("subscription"))
	if err != nil {
		return err
	}
	return s.respondSubscription(w, r, http.StatusOK, &sub)
}

// unsubscribe deletes a subscription.
func (s *surface) unsubscribe(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	return respondNothing(w, s.store.Unsubscribe(r.Context(), p, r.PathValue("subscription")))
}

// link adds streams to a subscription.
func (s *surface) link(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var body struct {
		Streams []string `json:"streams"`
	}
	if err := server.Decode(r, &body); err != nil {
		return err
	}
	return respondNothing(w, s.store.Link(r.Context(), p, r.PathValue("subscription"), body.Streams))
}

// unlink removes a stream from a subscription.
func (s *surface) unlink(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	return respondNothing(w, s.store.Unlink(r.Context(), p, r.PathValue("subscription"), r.PathValue("path")))
}

// respondNothing responds with 204, or returns the error.
func respondNothing(w http.ResponseWriter, err error) error {
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// claim gives a worker the lease of a subscription.
func (s *surface) claim(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	var body struct {
		Worker string `json:"worker"`
	}
	if err := server.Decode(r, &body); err != nil {
		return err
	}
	wake, err := s.store.Claim(r.Context(), p, r.PathValue("subscription"), body.Worker)
	if err != nil {
		return err
	}
	server.WriteJSON(w, http.StatusOK, claimBody{wake.ID, wake.Generation, wake.Token, streams.WakeLinks(wake.Links), wake.LeaseMillis})
	return nil
}

// claimBody is what a worker gets.
type claimBody struct {
	WakeID      string             `json:"wake_id"`
	Generation  int64              `json:"generation"`
	Token       string             `json:"token"`
	Streams     []streams.WakeLink `json:"streams"`
	LeaseMillis int64              `json:"lease_ttl_ms"`
}

// report serves three routes that differ in name only: callback for webhooks, ack and release for workers that have claimed. The token
// says which subscription it is for, so the kinds need not be distinguished. report answers the requests of a worker that has a token of its wake.
func (s *surface) report(isRelease bool) server.Handler {
	return func(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
		var body struct {
			WakeID     string `json:"wake_id"`
			Generation int64  `json:"generation"`
			Acks       []struct {
				Stream string `json:"stream"`
				Path   string `json:"path"` // which older clients send
				Offset string `json:"offset"`
			} `json:"acks"`
			Done bool `json:"done"`
		}
		if err := server.Decode(r, &body); err != nil {
			return err
		}
		report := streams.Report{Wake: body.WakeID, Generation: body.Generation, IsDone: body.Done, IsRelease: isRelease}
		for _, a := range body.Acks {
			position, _, err := parseOffset(a.Offset)
			if err != nil {
				return &streams.SubscriptionError{Code: streams.CodeOffset, Message: err.Error()}
			}
			path := a.Stream
			if path == "" {
				path = a.Path
			}
			report.Acks = append(report.Acks, streams.Ack{Path: path, Position: position})
		}
		hasNext, err := s.store.Report(r.Context(), server.BearerToken(r), r.PathValue("subscription"), report)
		if isRelease || err != nil {
			return respondNothing(w, err)
		}
		server.WriteJSON(w, http.StatusOK, map[string]bool{"ok": true, "next_wake": hasNext})
		return nil
	}
}

// keys responds with the public keys of signatures, without authentication.
func (s *surface) keys(w http.ResponseWriter, r *http.Request, _ gateway.Principal) error {
	id, x, err := s.store.PublicKey(r.Context())
	if err != nil {
		return err
	}
	list := []map[string]string{}
	if id != "" {
		list = append(list, map[string]string{"kty": "OKP", "crv": "Ed25519", "kid": id, "use": "sig", "alg": "EdDSA", "x": x})
	}
	body, err := server.Marshal(map[string]any{"keys": list})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/jwk-set+json")
	w.Header().Set("Cache-Control", "public, max-age=300")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body) // best effort: the client may have disconnected
	return nil
}

// registerSubscriptions adds the routes of subscriptions.
func (s *surface) registerSubscriptions() {
	const subscriptionPath = controlRoot + "subscriptions/{subscription}"
	s.srv.HandleAll(server.Authenticated, []server.Route{
		{Method: http.MethodPut, Pattern: subscriptionPath, Handler: subscribed(s.subscribe), Errors: respondError},
		{Method: http.MethodGet, Pattern: subscriptionPath, Handler: subscribed(s.subscription), Errors: respondError},
		{Method: http.MethodDelete, Pattern: subscriptionPath, Handler: subscribed(s.unsubscribe), Errors: respondError},
		{Method: http.MethodPost, Pattern: subscriptionPath + "/streams", Handler: subscribed(s.link), Errors: respondError},
		{Method: http.MethodDelete, Pattern: subscriptionPath + "/streams/{path...}", Handler: subscribed(s.unlink), Errors: respondError},
		{Method: http.MethodPost, Pattern: subscriptionPath + "/claim", Handler: subscribed(s.claim), Errors: respondError},
	})
	s.srv.HandleAll(server.Public, []server.Route{
		{Method: http.MethodPost, Pattern: subscriptionPath + "/ack", Handler: subscribed(s.report(false)), OwnToken: true, Errors: respondError},
		{Method: http.MethodPost, Pattern: subscriptionPath + "/callback", Handler: subscribed(s.report(false)), OwnToken: true, Errors: respondError},
		{Method: http.MethodPost, Pattern: subscriptionPath + "/release", Handler: subscribed(s.report(true)), OwnToken: true, Errors: respondError},
		{Method: http.MethodGet, Pattern: controlRoot + "jwks.json", Handler: subscribed(s.keys), Errors: respondError},
	})
}
