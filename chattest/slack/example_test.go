package slack_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"

	"github.com/leat-dev/leat/chattest/slack"
)

func Example() {
	fake := slack.New(slack.Options{Token: "xoxb-test"})
	server := httptest.NewServer(fake)
	defer server.Close()
	fake.Say(slack.Direct("D7", "U7", "Ann"), "hello")
	response, err := http.PostForm(server.URL+"/api/chat.postMessage", url.Values{"token": {"xoxb-test"}, "channel": {"D7"}, "text": {"*Hi* Ann"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = response.Body.Close()
	for _, m := range fake.Messages("D7") {
		fmt.Println(m.User, m.Text)
	}
	// Output:
	// U7 hello
	// UBOT *Hi* Ann
}
