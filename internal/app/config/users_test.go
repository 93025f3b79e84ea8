package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/app/config"
)

func TestUsers(t *testing.T) {
	const secret = "users: {secret: 0123456789abcdef0123456789abcdef}\n"
	for text, want := range map[string]string{
		secret: "",
		secret + "listen: [\"0.0.0.0:1\"]\nhosts: [\"*\"]":                  "", // every user needs a token, so the gateway is not open
		"users: {secret: short}":                                            "users.secret: has 5 bytes, at least 32",
		"users: {secret_file: /a, key_file: /b}":                            "users: set only one of",
		"users: {issuer: x}":                                                "without a key",
		"users: {admin_scope: true}":                                        "without a key",
		"users: {jwks: id.example.com, audience: [a]}":                      "users.jwks: invalid URL",
		"users: {jwks: \"http://id.example.com/k\", audience: [a]}":         "users.jwks: use https",
		"users: {jwks: \"http://127.0.0.1:1/k\", audience: [a]}":            "",
		"users: {jwks: \"https://id.example.com/k\"}":                       "users.audience or users.issuer",
		"users: {jwks: \"https://id.example.com/k\", issuer: x}":            "",
		"users: {key_file: /k, subject_claim: \"\"}":                        "users.subject_claim",
		"users: {key_file: /k, admin_scope: true}":                          "users.admin_scope",
		"users: {key_file: /k, admin_scope: true, scopes_claim: scope}":     "",
		"users: {issuer: x}\nlisten: [\"0.0.0.0:1\"]":                       "is reachable from other machines",
		"users: {key_file: /k, subject_claim: user.id, tenant_claim: org}":  "",
		"users: {jwks: \"https://u:p@id.example.com/k\", audience: [a, b]}": "",
	} {
		c, err := config.Load(write(t, text), env())
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		err = c.Check(kinds, getenv)
		if want == "" && err == nil {
			continue
		}
		if want == "" || !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}
