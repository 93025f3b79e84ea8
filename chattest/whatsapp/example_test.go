package whatsapp_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/leat-dev/leat/chattest/whatsapp"
)

// A bot that answers every message is tested without sockets.
func Example() {
	fake := whatsapp.New(whatsapp.Options{Token: "token", Number: "100", AppSecret: "secret", VerifyToken: "verify"})
	bot := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, r.URL.Query().Get("hub.challenge"))
			return
		}
		answer := `{"messaging_product": "whatsapp", "to": "15550001", "type": "text", "text": {"body": "Hello Ann"}}`
		request, _ := http.NewRequest(http.MethodPost, "http://fake/v24.0/100/messages", strings.NewReader(answer))
		request.Header.Set("Authorization", "Bearer token")
		if response, err := fake.RoundTrip(request); err == nil {
			_ = response.Body.Close()
		}
	})
	if err := fake.Subscribe("http://bot/webhook", whatsapp.Handler(bot)); err != nil {
		fmt.Println(err)
	}
	fake.Say(whatsapp.Person{ID: "15550001", Name: "Ann"}, "hello")
	for _, m := range fake.Messages("15550001") {
		fmt.Println(m.Text)
	}
	// Output:
	// hello
	// Hello Ann
}
