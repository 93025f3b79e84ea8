package whatsapp

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/live"
)

// defaultURL is the address of the public Cloud API.
const defaultURL = "https://graph.facebook.com/v24.0"

// maxReceipts is how many read receipts may wait. If there are more, the oldest messages get theirs and the others none.
const maxReceipts = 64

// Options configure a channel. All but URL are required.
type Options struct {
	Name   string
	Token  string // access token of a system user
	Number string // id of the phone number
	// AppSecret signs the requests to the webhook. VerifyToken is a text that the operator chooses when the webhook is set up.
	AppSecret, VerifyToken string
	// URL is the address of another Cloud API server, with the version. If it is empty, it is that of Meta.
	URL string
	Log *slog.Logger
}

// numberForm is the form of the id of a phone number.
var numberForm = regexp.MustCompile(`^\d+$`)

// Check returns an error if the options can't be those of a number.
func (o Options) Check() error {
	switch {
	case !numberForm.MatchString(o.Number):
		return errors.New("phone_number_id is the id of the number in digits; the app's dashboard shows it under WhatsApp, API Setup")
	case o.AppSecret == "":
		return errors.New("the app's secret is missing; the app's dashboard shows it under App settings, Basic")
	case o.VerifyToken == "":
		return errors.New("the verify token is missing: choose one and enter it where the webhook is configured too")
	}
	return nil
}

// number is a phone number. Make it with New.
type number struct {
	*live.Bot
	options Options
	client  *client
	log     *slog.Logger
	pace    pacer
	// receipts are the ids of messages that get a read receipt with a typing indicator.
	receipts chan string
	phone    atomic.Pointer[string] // the number as people see it, once it is known
}

var (
	_ channel.WebhookChannel = (*number)(nil)
	_ channel.MediaChannel   = (*number)(nil)
	_ channel.StreamChannel  = (*number)(nil)
)

// New returns a channel for one phone number.
func New(o Options) channel.Channel {
	return &number{
		options: o, log: o.Log, Bot: live.NewBot(o.Name, rules, numberGap, o.Log), receipts: make(chan string, maxReceipts), pace: pacer{next: map[string]time.Time{}},
		client: newClient(strings.TrimSuffix(cmp.Or(o.URL, defaultURL), "/"), o.Token, o.URL != ""),
	}
}

// Capabilities implements [channel.Channel].
func (n *number) Capabilities() channel.CapabilitySet {
	return channel.CapabilitySet{FileUpload: true, ReactiveOnly: true}
}

// Link returns the address that opens a chat with the number, or "" until the number is known.
func (n *number) Link() string {
	phone := n.phone.Load()
	if phone == nil {
		return ""
	}
	digits := strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return r
		}
		return -1
	}, *phone)
	return "https://wa.me/" + url.PathEscape(digits)
}

// Send implements [channel.Channel].
func (n *number) Send(ctx context.Context, m channel.OutboundMessage) error {
	at, chat := n.newChat(m.ChatID, m.ReplyTo)
	return n.Bot.Send(ctx, at, chat, m)
}

// SendStream implements [channel.StreamChannel]. While the turn runs, the person sees the typing indicator and questions. The answer
// is sent when it is complete.
func (n *number) SendStream(ctx context.Context, chatID string, metadata channel.StreamMetadata, events <-chan channel.StreamEvent) error {
	at, chat := n.newChat(chatID, metadata.ReplyTo)
	return n.Deliver(ctx, at, chat, metadata, events)
}
