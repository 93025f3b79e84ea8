package cli

import (
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/leat-dev/leat/test/browser"
)

// A user logs in to the page with a user token and is still logged in after a reload. When the session ends in another tab, the page
// returns to the login.
func TestLoginInABrowser(t *testing.T) {
	page := browser.Open(t)
	const secret = "a secret of this test alone, long enough"
	t.Setenv("LEAT_USERS_SECRET", secret)
	gw := startGateway(t)
	mint := func(life time.Duration) string {
		s, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"sub": "alice", "exp": time.Now().Add(life).Unix()}).SignedString([]byte(secret))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	login := func(token string) {
		page.Eval(`(() => { document.querySelector("#token").value = "` + token + `"; document.querySelector("#token").form.requestSubmit(); })()`)
	}
	const online = browser.Connected
	const shown = `document.querySelector("#token")`
	page.Go(gw.url + "/")
	page.Wait("the login is shown", shown)
	login("nonsense")
	page.Wait("the page reports an invalid token", `document.querySelector("form [role=alert]").innerText.includes("Invalid token")`)
	login(mint(-time.Hour))
	page.Wait("the page reports an expired token", `document.querySelector("form [role=alert]").innerText.includes("expired")`)
	login(mint(time.Hour))
	page.Wait("the page is online", online)
	page.Reload()
	page.Wait("the page is online again", online)
	if got := page.Eval(`document.cookie + JSON.stringify(localStorage)`); got != `{"leat.account:`+gw.url+`":"/alice"}` { // the account is stored, the token is not
		t.Errorf("the page's scripts can read %s", got)
	}
	page.Eval(`fetch("api/auth/session").then((r) => r.json()).then((s) => { window.who = s.subject; })`)
	page.Wait("the page knows who it is for", `window.who === "alice"`)
	page.Eval(`fetch("api/auth/session", { method: "DELETE" })`) // as another tab does
	page.Wait("the login is shown again", shown)
}
