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

// Claims says which claims of a token tell what. A name is that of a claim, or a path into nested ones with dots between;
// a claim whose name has dots itself is found as well.
type Claims struct {
	Subject string // empty is "sub"
	Tenant  string // empty: all users are of the one tenant without a name
	Scopes  string // empty: all users may what users may
}

// principal reads whom a token speaks for.
func (v *Verifier) principal(all jwt.MapClaims) (gateway.Principal, error) {
	var p gateway.Principal
	var err error
	if p.Subject, err = identifier(all, v.claims.Subject); err != nil {
		return p, err
	}
	if v.claims.Tenant != "" {
		if p.Tenant, err = identifier(all, v.claims.Tenant); err != nil {
			return p, err
		}
	}
	if v.claims.Scopes == "" {
		return p, nil
	}
	p.Scopes = []string{} // not nil: a token that grants nothing grants nothing
	for _, s := range words(lookup(all, v.claims.Scopes)) {
		switch {
		case s == ScopeAdmin:
			p.Admin = p.Admin || v.admin
		case slices.Contains(gateway.Scopes(), s) && !slices.Contains(p.Scopes, s):
			p.Scopes = append(p.Scopes, s)
		}
	}
	return p, nil
}

// ScopeAdmin, among a token's scopes, makes its subject an admin where the configuration allows that.
const ScopeAdmin = "admin"

// lookup finds a claim by its name, or by the path that the name is; nil where there is none.
func lookup(all map[string]any, name string) any {
	if v, ok := all[name]; ok {
		return v
	}
	for i, r := range name {
		if r != '.' {
			continue
		}
		if inner, ok := all[name[:i]].(map[string]any); ok {
			if v := lookup(inner, name[i+1:]); v != nil {
				return v
			}
		}
	}
	return nil
}

var wholeNumber = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)

// identifier reads a claim that names somebody: a text, or a whole number as databases count users by.
func identifier(all map[string]any, name string) (string, error) {
	var id string
	switch c := lookup(all, name).(type) {
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
	// What is no Unicode has become U+FFFD when it was decoded, so that two who differ would be one.
	if strings.ContainsRune(id, utf8.RuneError) {
		return "", fmt.Errorf("the claim %q is not clean Unicode", name)
	}
	if err := event.CheckID("claim "+name, id); err != nil {
		return "", err
	}
	return id, nil
}

// words reads a list of scopes: one text with spaces, as OAuth has it, or an array of texts.
func words(claim any) []string {
	switch c := claim.(type) {
	case string:
		return strings.Fields(c)
	case []any:
		var all []string
		for _, v := range c {
			if s, ok := v.(string); ok {
				all = append(all, s)
			}
		}
		return all
	}
	return nil
}
