package cli

import (
	"errors"
	"fmt"
	"syscall"

	leat "github.com/leat-dev/leat/clients/go"
)

// defaultURL is where serve listens by default.
const defaultURL = "http://127.0.0.1:31337"

// operator has the flags of commands that call a gateway with an operator's rights.
type operator struct {
	URL   string `name:"url" help:"Address of the gateway." default:"${url}" env:"LEAT_URL"`
	Token string `help:"API token, if the gateway has one." env:"LEAT_API_TOKEN,ELIZA_API_TOKEN" placeholder:"T"`
}

func (o *operator) client() *leat.Client { return &leat.Client{URL: o.URL, Token: o.Token} }

// remote has the flags of commands that call a gateway for a user. Commands for operators embed operator instead:
// their flag --subject selects whose data the command is about.
type remote struct {
	operator
	Subject string `help:"Subject to act for." placeholder:"ID"`
	Tenant  string `help:"The tenant of the subject." placeholder:"ID"`
}

// client returns a client of the gateway that acts for the subject. Only the holder of the API token may act for
// others.
func (r *remote) client() *leat.Client {
	return &leat.Client{URL: r.URL, Token: r.Token, Subject: r.Subject, Tenant: r.Tenant}
}

// explain replaces common errors with ones that say what to do: no gateway answers, the token is missing or wrong,
// or the conversation doesn't exist. Other responses of the gateway are reduced to their message. A nil error stays
// nil.
func (o *operator) explain(err error) error {
	var e *leat.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no gateway answers at %s; start one with leat serve, or set its address with --url", o.URL)
	case errors.As(err, &e) && e.Status == 401 && o.Token == "":
		return fmt.Errorf("the gateway at %s requires a token; set LEAT_API_TOKEN or --token", o.URL)
	case errors.As(err, &e) && e.Status == 401:
		return fmt.Errorf("the gateway at %s rejected the token", o.URL)
	case errors.As(err, &e) && e.Status == 404 && e.Message == "not found":
		return errors.New("not found, or you don't have access")
	case errors.As(err, &e) && e.Message != "":
		return errors.New(e.Message)
	}
	return err
}
