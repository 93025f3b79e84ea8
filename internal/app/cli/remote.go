package cli

import (
	"errors"
	"fmt"
	"syscall"

	leat "github.com/leat-dev/leat/clients/go"
)

// remote are the flags of commands that call a gateway.
type remote struct {
	URL     string `name:"url" help:"Address of the gateway." default:"http://127.0.0.1:31337" env:"LEAT_URL"`
	Token   string `help:"API token, where one is set." env:"LEAT_API_TOKEN,ELIZA_API_TOKEN" placeholder:"T"`
	Subject string `help:"For whom the token's holder acts." placeholder:"ID"`
	Tenant  string `help:"The tenant of that subject." placeholder:"ID"`
}

func (r *remote) client() *leat.Client {
	return &leat.Client{URL: r.URL, Token: r.Token, Subject: r.Subject, Tenant: r.Tenant}
}

// explain adds to an error what to do about it.
func (r *remote) explain(err error) error {
	var e *leat.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no gateway answers at %s: start one with leat serve, or give its address with --url", r.URL)
	case errors.As(err, &e) && e.Status == 401 && r.Token == "":
		return fmt.Errorf("the gateway at %s needs a token: --token or LEAT_API_TOKEN", r.URL)
	case errors.As(err, &e) && e.Status == 401:
		return fmt.Errorf("the gateway at %s does not take this token", r.URL)
	case errors.As(err, &e) && e.Status == 404 && e.Message == "not found":
		return errors.New("not found: the gateway has none of this name, or it is somebody else's")
	case errors.As(err, &e) && e.Message != "":
		return errors.New(e.Message)
	}
	return err
}
