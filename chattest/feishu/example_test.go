package feishu_test

import (
	"fmt"
	"io"
	"net/http"

	"github.com/leat-dev/leat/chattest/feishu"
)

// The fake checks the webhook of a bot, and keeps the events that it doesn't confirm.
func Example() {
	fake := feishu.New(feishu.Options{AppID: "cli_1", AppSecret: "secret", EncryptKey: "key"})
	bot := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) })
	fmt.Println(fake.Subscribe("http://bot/webhook", feishu.Handler(bot)))
	fake.Say(feishu.Private("oc_1", "ou_ann"), "hello")
	for _, m := range fake.Messages("oc_1") {
		fmt.Println(m.Text)
	}
	// Output:
	// feishu fake: the webhook answered the challenge with HTTP 200 and "{}"
	// hello
}
