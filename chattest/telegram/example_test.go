package telegram_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/leat-dev/leat/chattest/telegram"
)

func Example() {
	fake := telegram.New(telegram.Options{Token: "1:test"})
	fake.Say(telegram.Private(7, "Ann"), "hello")

	client := &http.Client{Transport: fake}
	body := strings.NewReader(`{"chat_id": 7, "text": "<b>Hello</b>, Ann!", "parse_mode": "HTML"}`)
	response, err := client.Post("https://api.telegram.org/bot1:test/sendMessage", "application/json", body)
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()

	for _, m := range fake.Visible(7) {
		fmt.Println(m.Text, m.Entities)
	}
	// Output:
	// Hello, Ann! [bold[0:5]]
}
