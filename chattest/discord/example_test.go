package discord_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/leat-dev/leat/chattest/discord"
)

func Example() {
	fake := discord.New(discord.Options{Token: "test"})
	ann := discord.Direct("7", "Ann")
	fake.Say(ann, "hello")

	client := &http.Client{Transport: fake}
	address := "https://discord.com/api/v10/channels/" + ann.Channel + "/messages"
	r, err := http.NewRequest(http.MethodPost, address, strings.NewReader(`{"content": "Hello, Ann!"}`))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Authorization", "Bot test")
	r.Header.Set("User-Agent", "DiscordBot (https://example.com, 1.0)")
	r.Header.Set("Content-Type", "application/json")
	response, err := client.Do(r)
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()

	for _, m := range fake.Messages(ann.Channel) {
		fmt.Printf("%s: %s\n", m.Name, m.Text)
	}
	// Output:
	// Ann: hello
	// leat: Hello, Ann!
}
