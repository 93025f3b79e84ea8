package auth

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
)

// Claims names the claims of a token. A name is a claim, or a path of nested claims separated by dots. A claim whose own name
// has dots is found too.
type Claims struct {
	Subject string // if empty, "sub"
	Tenant  string // if empty, all users belong to the one unnamed tenant
	Scopes  string // if empty, users have all scopes
}

// principal returns the principal of a token's claims.
//
// Unknown scopes are ignored, because an identity service may issue scopes for other programs. The admin
// scope counts only if the configuration allows it.
func (v *verifier) principal(claims jwt.MapClaims) (gateway.Principal, error) {
	var p gateway.Principal
	var err error
	if p.Subject, err = identifier(claims, v.claims.Subject); err != nil {
		return p, err
	}
	if v.claims.Tenant != "" {
		if p.Tenant, err = identifier(claims, v.claims.Tenant); err != nil {
			return p, err
		}
	}
	if v.claims.Scopes == "" {
		return p, nil
	}
	p.Scopes = []string{} // not nil: a token without scopes has none
	for _, s := range words(lookup(claims, v.claims.Scopes)) {
		switch {
		case s == scopeAdmin:
			p.Admin = p.Admin || v.admin
		case slices.Contains(gateway.Scopes(), s) && !slices.Contains(p.Scopes, s):
			p.Scopes = append(p.Scopes, s)
		}
	}
	return p, nil
}

// scopeAdmin in a token's scopes makes its subject an admin, if the configuration allows it.
const scopeAdmin = "admin"

// lookup returns a claim by its name or path, or nil.
//
// It tries every split at a dot, so that "a.b.c" finds {"a.b": {"c": 1}} too. A claim with the whole name
// wins.
func lookup(claims map[string]any, name string) any {
	if v, ok := claims[name]; ok {
		return v
	}
	for i, r := range name {
		if r != '.' {
			continue
		}
		if inner, ok := claims[name[:i]].(map[string]any); ok {
			if v := lookup(inner, name[i+1:]); v != nil {
				return v
			}
		}
	}
	return nil
}

var wholeNumber = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)

// identifier returns a claim that identifies a user or tenant: a string, or an integer such as a database key.
//
// Numbers are used in their written form, so that large ones keep all digits. Fractions and exponents are
// refused, because one number would then have several forms and so be several users.
func identifier(claims map[string]any, name string) (string, error) {
	var id string
	switch c := lookup(claims, name).(type) {
	case string:
		id = c
	case json.Number:
		if id = c.String(); !wholeNumber.MatchString(id) {
			return "", fmt.Errorf("the claim %q is a number with a sign, a fraction or an exponent", name)
		}
	case nil:
		return "", fmt.Errorf("the claim %q is missing", name)
	default:
		return "", fmt.Errorf("the claim %q is neither text nor number", name)
	}
	if strings.TrimSpace(id) == "" {
		return "", fmt.Errorf("the claim %q is empty", name)
	}
	// Decoding has replaced invalid Unicode by U+FFFD, so two different identifiers could be equal.
	if strings.ContainsRune(id, utf8.RuneError) {
		return "", fmt.Errorf("the claim %q is not clean Unicode", name)
	}
	if err := event.CheckID("claim "+name, id); err != nil {
		return "", err
	}
	return id, nil
}

// words returns a list of scopes: a string with spaces, as in OAuth, or an array of strings.
func words(claim any) []string {
	switch c := claim.(type) {
	case string:
		return strings.Fields(c)
	case []any:
		var list []string
		for _, v := range c {
			if s, ok := v.(string); ok {
				list = append(list, s)
			}
		}
		return list
	}
	return nil
}
