package channels

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	lark "github.com/larksuite/oapi-sdk-go/v3"
	larkcore "github.com/larksuite/oapi-sdk-go/v3/core"
	"github.com/larksuite/oapi-sdk-go/v3/core/httpserverext"
	larkevent "github.com/larksuite/oapi-sdk-go/v3/event"
	"github.com/larksuite/oapi-sdk-go/v3/event/dispatcher"
	"github.com/larksuite/oapi-sdk-go/v3/event/dispatcher/callback"
	larkcardkit "github.com/larksuite/oapi-sdk-go/v3/service/cardkit/v1"
	larkim "github.com/larksuite/oapi-sdk-go/v3/service/im/v1"

	"github.com/leat-dev/leat/chattest/feishu"
)

const larkCard = `{"schema": "2.0", "config": {"streaming_mode": true, "update_multi": true}, "body": {"elements": [` +
	`{"tag": "markdown", "element_id": "md", "content": "hello"},` +
	`{"tag": "button", "text": {"tag": "plain_text", "content": "Yes"}, "behaviors": [{"type": "callback", "value": {"command": "yes"}}]}]}}`

// openLark starts a fake and the platform's own client. Each test has an app of its own, because the client shares access tokens.
func openLark(t *testing.T) (*feishu.Server, *lark.Client) {
	t.Helper()
	fake := feishu.New(feishu.Options{AppID: "cli_" + t.Name(), AppSecret: "secret", EncryptKey: "key"})
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	return fake, lark.NewClient("cli_"+t.Name(), "secret", lark.WithOpenBaseUrl(server.URL), lark.WithLogLevel(larkcore.LogLevelError))
}

// The dispatcher of oapi-sdk-go decrypts and checks the fake's events.
func TestFeishuEvents(t *testing.T) {
	fake, client := openLark(t)
	var messages []*larkim.P2MessageReceiveV1Data
	var presses []string
	events := dispatcher.NewEventDispatcher("verification", "key").
		OnP2MessageReceiveV1(func(_ context.Context, e *larkim.P2MessageReceiveV1) error {
			messages = append(messages, e.Event)
			return nil
		}).
		OnP2CardActionTrigger(func(_ context.Context, e *callback.CardActionTriggerEvent) (*callback.CardActionTriggerResponse, error) {
			command, _ := e.Event.Action.Value["command"].(string)
			presses = append(presses, e.Event.Operator.OpenID+" "+command)
			return nil, nil
		})
	events.InitConfig(larkevent.WithLogLevel(larkcore.LogLevelError))
	hook := http.HandlerFunc(httpserverext.NewEventHandlerFunc(events))
	if err := fake.Subscribe("http://bot/hook", feishu.Handler(hook)); err != nil {
		t.Fatal(err)
	}
	ann := feishu.Group("oc_1", "ou_ann")
	root := fake.Say(ann, "@bot grüße")
	fake.Reply(ann, root, "more", true)
	fake.SendFile(ann, feishu.File{Name: "a.pdf", Content: []byte("%PDF")})
	if len(messages) != 3 {
		t.Fatalf("%d messages", len(messages))
	}
	m := messages[0]
	if *m.Message.Content != `{"text":"@_user_1 grüße"}` || *m.Sender.SenderId.OpenId != "ou_ann" || *m.Message.ChatType != "group" ||
		len(m.Message.Mentions) != 1 || *m.Message.Mentions[0].Id.OpenId != feishu.BotID || *m.Message.Mentions[0].Key != "@_user_1" {
		t.Error(larkcore.Prettify(m))
	}
	if m := messages[1].Message; *m.RootId != root || *m.ThreadId == "" {
		t.Error(larkcore.Prettify(m))
	}
	var file struct {
		Key string `json:"file_key"`
	}
	if err := json.Unmarshal([]byte(*messages[2].Message.Content), &file); err != nil {
		t.Fatal(err)
	}
	resource, err := client.Im.V1.MessageResource.Get(t.Context(),
		larkim.NewGetMessageResourceReqBuilder().MessageId(*messages[2].Message.MessageId).FileKey(file.Key).Type("file").Build())
	if err != nil {
		t.Fatal(err)
	}
	if !resource.Success() {
		t.Error(resource.Msg)
	} else if b, err := io.ReadAll(resource.File); string(b) != "%PDF" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	sent, err := client.Im.V1.Message.Create(t.Context(), larkim.NewCreateMessageReqBuilder().ReceiveIdType("chat_id").Body(
		larkim.NewCreateMessageReqBodyBuilder().ReceiveId("oc_1").MsgType("interactive").Content(larkCard).Build()).Build())
	if err != nil || !sent.Success() {
		t.Fatal(err, sent.Msg)
	}
	fake.Press(ann, *sent.Data.MessageId, "Yes")
	if !slices.Equal(presses, []string{"ou_ann yes"}) {
		t.Errorf("%q", presses)
	}
	for _, d := range fake.Deliveries() {
		if d.Status != http.StatusOK {
			t.Errorf("HTTP %d for %s", d.Status, d.Event)
		}
	}
}

// The client sends, replies, uploads, updates and deletes, and understands refusals.
func TestFeishuMessages(t *testing.T) {
	fake, client := openLark(t)
	id := fake.Say(feishu.Private("oc_1", "ou_ann"), "hello")
	create := func(kind, content, uuid string) *larkim.CreateMessageResp {
		response, err := client.Im.V1.Message.Create(t.Context(), larkim.NewCreateMessageReqBuilder().ReceiveIdType("chat_id").Body(
			larkim.NewCreateMessageReqBodyBuilder().ReceiveId("oc_1").MsgType(kind).Content(content).Uuid(uuid).Build()).Build())
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	first, second := create("text", `{"text":"hi"}`, "u1"), create("text", `{"text":"hi"}`, "u1")
	if !first.Success() || *first.Data.MessageId != *second.Data.MessageId {
		t.Errorf("%s, %s", first.Msg, second.Msg)
	}
	if r := create("text", `{"text":""}`, ""); r.Success() || r.Code != 230001 {
		t.Errorf("code %d", r.Code)
	}
	reply, err := client.Im.V1.Message.Reply(t.Context(), larkim.NewReplyMessageReqBuilder().MessageId(id).Body(
		larkim.NewReplyMessageReqBodyBuilder().MsgType("text").Content(`{"text":"reply"}`).ReplyInThread(true).Build()).Build())
	if err != nil || !reply.Success() || reply.Data.ThreadId == nil {
		t.Fatal(err, larkcore.Prettify(reply))
	}
	upload, err := client.Im.V1.File.Create(t.Context(), larkim.NewCreateFileReqBuilder().Body(
		larkim.NewCreateFileReqBodyBuilder().FileType("stream").FileName("a.txt").File(bytes.NewReader([]byte("text"))).Build()).Build())
	if err != nil || !upload.Success() {
		t.Fatal(err, larkcore.Prettify(upload))
	}
	if r := create("file", `{"file_key":"`+*upload.Data.FileKey+`"}`, ""); !r.Success() {
		t.Error(r.Msg)
	}
	removed, err := client.Im.V1.Message.Delete(t.Context(), larkim.NewDeleteMessageReqBuilder().MessageId(*first.Data.MessageId).Build())
	if err != nil || !removed.Success() {
		t.Error(err, larkcore.Prettify(removed))
	}
	if got := fake.Visible("oc_1"); len(got) != 2 || got[0].Text != "reply" || got[1].File.Name != "a.txt" {
		t.Errorf("%+v", got)
	}
	for _, v := range fake.Violations() {
		t.Error(v)
	}
}

// The client creates, sends and updates a card of CardKit.
func TestFeishuCards(t *testing.T) {
	fake, client := openLark(t)
	fake.Say(feishu.Private("oc_1", "ou_ann"), "hello")
	created, err := client.Cardkit.V1.Card.Create(t.Context(), larkcardkit.NewCreateCardReqBuilder().Body(
		larkcardkit.NewCreateCardReqBodyBuilder().Type("card_json").Data(larkCard).Build()).Build())
	if err != nil || !created.Success() {
		t.Fatal(err, larkcore.Prettify(created))
	}
	card := *created.Data.CardId
	sent, err := client.Im.V1.Message.Create(t.Context(), larkim.NewCreateMessageReqBuilder().ReceiveIdType("chat_id").Body(
		larkim.NewCreateMessageReqBodyBuilder().ReceiveId("oc_1").MsgType("interactive").Content(`{"type":"card","data":{"card_id":"`+card+`"}}`).Build()).Build())
	if err != nil || !sent.Success() {
		t.Fatal(err, larkcore.Prettify(sent))
	}
	content := func(text string, sequence int) int {
		r, err := client.Cardkit.V1.CardElement.Content(t.Context(), larkcardkit.NewContentCardElementReqBuilder().CardId(card).ElementId("md").Body(
			larkcardkit.NewContentCardElementReqBodyBuilder().Content(text).Sequence(sequence).Build()).Build())
		if err != nil {
			t.Fatal(err)
		}
		return r.Code
	}
	if code := content("hello world", 1); code != 0 {
		t.Errorf("code %d", code)
	}
	if code := content("late", 1); code != 300317 {
		t.Errorf("code %d", code)
	}
	settings, err := client.Cardkit.V1.Card.Settings(t.Context(), larkcardkit.NewSettingsCardReqBuilder().CardId(card).Body(
		larkcardkit.NewSettingsCardReqBodyBuilder().Settings(`{"config":{"streaming_mode":false}}`).Sequence(2).Build()).Build())
	if err != nil || !settings.Success() {
		t.Error(err, larkcore.Prettify(settings))
	}
	converted, err := client.Cardkit.V1.Card.IdConvert(t.Context(), larkcardkit.NewIdConvertCardReqBuilder().Body(
		larkcardkit.NewIdConvertCardReqBodyBuilder().MessageId(*sent.Data.MessageId).Build()).Build())
	if err != nil || !converted.Success() || *converted.Data.CardId != card {
		t.Error(err, larkcore.Prettify(converted))
	}
	if got := fake.Visible("oc_1"); len(got) != 1 || got[0].Text != "hello world" || got[0].IsStreaming {
		t.Errorf("%+v", got)
	}
}
