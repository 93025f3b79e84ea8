package wecom_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/chattest/wecom"
)

// A connection needs no sockets.
func Example() {
	fake := wecom.New(wecom.Options{BotID: "bot", Secret: "secret"})
	ctx := context.Background()
	conn, _, err := websocket.Dial(ctx, "ws://fake", &websocket.DialOptions{HTTPClient: &http.Client{Transport: fake}})
	if err != nil {
		fmt.Println(err)
		return
	}
	subscription := `{"cmd": "aibot_subscribe", "headers": {"req_id": "1"}, "body": {"bot_id": "bot", "secret": "secret"}}`
	if err := conn.Write(ctx, websocket.MessageText, []byte(subscription)); err != nil {
		fmt.Println(err)
	}
	_, answer, err := conn.Read(ctx)
	fmt.Println(string(answer), err)
	_ = conn.CloseNow()
	// Output: {"headers":{"req_id":"1"},"errcode":0,"errmsg":"ok"} <nil>
}
