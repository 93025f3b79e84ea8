package attacks

import (
	"net/http"
	"strings"
	"testing"
)

func TestTokens(t *testing.T) {
	get := func(headers ...string) string {
		return request("GET", "/api/conversations", "", headers...)
	}
	for name, req := range map[string]string{
		"none":            get(anonymous),
		"empty":           get("Authorization: Bearer "),
		"scheme alone":    get("Authorization: Bearer"),
		"prefix":          get("Authorization: Bearer " + token[:len(token)-1]),
		"longer":          get("Authorization: Bearer TOKENx"),
		"other case":      get("Authorization: Bearer " + strings.ToUpper(token)),
		"basic":           get("Authorization: Basic TOKEN"),
		"null byte":       get("Authorization: Bearer TOKEN%00"),
		"in the address":  request("GET", "/api/conversations?token=TOKEN&access_token=TOKEN", "", anonymous),
		"as user info":    get(anonymous, "Host: TOKEN@ADDR"),
		"cookie":          get("Cookie: leat_session=TOKEN; token=TOKEN"),
		"two, one wrong":  get("Authorization: Bearer wrong", "Authorization: Bearer TOKEN"),
		"wrong and right": get("Authorization: Bearer wrong", "X-Api-Key: TOKEN"),
	} {
		t.Run(name, func(t *testing.T) {
			a := raw(t, req)
			want(t, a, 401, 400, 403)
			if strings.Contains(a.body, token) {
				t.Error("the answer tells the token")
			}
		})
	}
	t.Run("subject without the token", func(t *testing.T) {
		want(t, raw(t, get(anonymous, "Leat-Subject: alice")), 401)
	})
	t.Run("empty subject", func(t *testing.T) { // must not fall back to the admin
		want(t, raw(t, get("Leat-Subject:")), 400)
		want(t, raw(t, get("Leat-Tenant: t")), 400)
	})
}

func TestCookies(t *testing.T) {
	c := cookie(t)
	name, value, _ := strings.Cut(strings.TrimPrefix(c, "Cookie: "), "=")
	get := func(value string) int {
		return raw(t, request("GET", "/api/conversations", "", "Cookie: "+name+"="+value)).StatusCode
	}
	if get(value) != 200 {
		t.Fatal("the cookie is good for nothing")
	}
	t.Run("attributes", func(t *testing.T) {
		a := raw(t, request("POST", sessionPath, `{"token":"`+token+`"}`, anonymous))
		line := a.Header.Get("Set-Cookie")
		for _, attribute := range []string{"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age="} {
			if !strings.Contains(line, attribute) {
				t.Errorf("%s is missing: %s", attribute, line)
			}
		}
		if strings.Contains(line, "Domain=") || strings.Contains(line, token) {
			t.Error(line)
		}
	})
	t.Run("forged", func(t *testing.T) {
		for i := range value {
			forged := []byte(value)
			if forged[i] == 'A' {
				forged[i] = 'B'
			} else {
				forged[i] = 'A'
			}
			if i == len(value)-1 {
				continue // its last bits may count for nothing
			}
			if status := get(string(forged)); status != 401 {
				t.Fatalf("character %d changed: status %d", i, status)
			}
			if i%7 > 0 {
				continue
			}
			if status := get(value[:i]); status != 401 {
				t.Fatalf("cut after %d: status %d", i, status)
			}
		}
	})
	t.Run("fixation", func(t *testing.T) { // a session cookie that an attacker chose is replaced
		chosen := name + "=chosen-by-somebody"
		a := raw(t, request("POST", sessionPath, `{"token":"`+token+`"}`, "Cookie: "+chosen, "Origin: http://"+gate.addr))
		cs := a.Cookies()
		if len(cs) != 1 || strings.Contains(cs[0].Value, "chosen") || cs[0].Value == value {
			t.Errorf("%v", cs)
		}
	})
	t.Run("end", func(t *testing.T) {
		a := raw(t, request("DELETE", sessionPath, "", c, "Origin: http://"+gate.addr))
		cs := a.Cookies()
		if a.StatusCode != http.StatusNoContent || len(cs) != 1 || cs[0].MaxAge >= 0 || cs[0].Value != "" {
			t.Errorf("%d %v", a.StatusCode, cs)
		}
	})
}
