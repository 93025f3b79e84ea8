package channels

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/leat-dev/leat/chattest/whatsapp"
)

// whatsapp-api-js sends texts, files and receipts to the fake, and reads its webhooks and refusals.
func TestWhatsApp(t *testing.T) {
	needNode(t)
	fake := whatsapp.New(whatsapp.Options{Token: "token", Number: "100", AppSecret: "secret", VerifyToken: "verify"})
	server := httptest.NewServer(fake)
	defer server.Close()
	hook := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.URL.Query().Get("hub.challenge"))
	})
	if err := fake.Subscribe("http://bot/hook", whatsapp.Handler(hook)); err != nil {
		t.Fatal(err)
	}
	ann := whatsapp.Person{ID: "15550001", Name: "Änn"}
	id := fake.Say(ann, "grüße/👍")
	fake.SendFile(ann, whatsapp.File{Name: "a.pdf", Type: "application/pdf", Content: []byte("%PDF")}, "Read this")
	fake.Press(ann, "1", "approve")
	fake.Status(ann.ID, "wamid.9", "failed", 131047, "Re-engagement message")
	type webhook struct {
		Body      string `json:"body"`
		Signature string `json:"signature"`
	}
	var webhooks []webhook
	for _, d := range fake.Deliveries() {
		webhooks = append(webhooks, webhook{string(d.Body), fake.Sign(d.Body)})
	}
	type sent struct {
		Messages []struct {
			ID string `json:"id"`
		} `json:"messages"`
		Success bool `json:"success"`
		Error   struct {
			Code int `json:"code"`
		} `json:"error"`
	}
	var result struct {
		Received []struct {
			From, Name, ID, Type, Status string
			Code                         int
			Content                      map[string]any
		} `json:"received"`
		Text, Read, Picture, Document, Stranger sent
		Stored                                  struct {
			Type string `json:"mime_type"`
			Size int    `json:"file_size"`
		}
		Content string `json:"content"`
	}
	runNode(t, "whatsapp.js", server.URL, map[string]any{"number": "100", "person": ann.ID, "id": id, "webhooks": webhooks}, &result)

	if len(result.Received) != 4 {
		t.Fatalf("%+v", result.Received)
	}
	text, file, button, status := result.Received[0], result.Received[1], result.Received[2], result.Received[3]
	if text.From != ann.ID || text.Name != "Änn" || text.ID != id || text.Content["body"] != "grüße/👍" {
		t.Errorf("%+v", text)
	}
	if file.Type != "document" || file.Content["filename"] != "a.pdf" || file.Content["caption"] != "Read this" {
		t.Errorf("%+v", file)
	}
	if reply, ok := button.Content["button_reply"].(map[string]any); !ok || reply["title"] != "approve" {
		t.Errorf("%+v", button)
	}
	if status.Status != "failed" || status.Code != 131047 {
		t.Errorf("%+v", status)
	}

	m := fake.Messages(ann.ID)[3:]
	if len(m) != 3 || m[0].Text != "*Hello* 👍" || m[0].ReplyTo != id || m[1].Type != "image" || m[1].Text != "A picture" || m[2].File.Name != "b.txt" {
		t.Fatalf("%+v", m)
	}
	for i, s := range []sent{result.Text, result.Picture, result.Document} {
		if len(s.Messages) != 1 || s.Messages[0].ID != m[i].ID {
			t.Errorf("%+v", s)
		}
	}
	if !result.Read.Success || !fake.Messages(ann.ID)[0].IsRead || result.Stranger.Error.Code != 131047 {
		t.Errorf("%+v, %+v", result.Read, result.Stranger)
	}
	if result.Content != "text" || result.Stored.Type != "text/plain" || result.Stored.Size != 4 {
		t.Errorf("%q, %+v", result.Content, result.Stored)
	}
	for _, v := range fake.Violations() {
		t.Error(v)
	}
}
