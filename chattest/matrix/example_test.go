package matrix_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/leat-dev/leat/chattest/matrix"
)

// A bot answers a message of a person.
func Example() {
	fake := matrix.New(matrix.Options{Token: "secret"})
	ann := fake.Direct("@ann:matrix.test", "Ann")
	fake.Say(ann, "hello")

	address := "http://matrix.test/_matrix/client/v3/rooms/" + ann.Room + "/send/m.room.message/1"
	r, _ := http.NewRequest(http.MethodPut, address, strings.NewReader(`{"msgtype":"m.text","body":"Hello, Ann."}`))
	r.Header.Set("Authorization", "Bearer secret")
	client := &http.Client{Transport: fake}
	if _, err := client.Do(r); err != nil {
		fmt.Println(err)
	}

	for _, m := range fake.Messages(ann.Room) {
		fmt.Printf("%s: %s\n", m.Sender, m.Text)
	}
	// Output:
	// @ann:matrix.test: hello
	// @leat:matrix.test: Hello, Ann.
}
