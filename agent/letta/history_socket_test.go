package letta

import "testing"

// An App Server that was killed while writing may have lost a conversation. It subscribes clients to it, but can't list it before
// the next message.
func TestParseRowsOfLostConversation(t *testing.T) {
	rows, more, err := parseRows([]byte(`{"type":"conversation_messages_list_response","request_id":"1","success":false,"messages":[],"next_before":null,"has_more":false,"error":"Conversation default not found"}`))
	if err != nil || len(rows) != 0 || more {
		t.Errorf("%d rows, more %v, %v; want an empty history", len(rows), more, err)
	}
	if _, _, err := parseRows([]byte(`{"success":false,"messages":[],"error":"disk full"}`)); err == nil {
		t.Error("another refusal was not reported as an error")
	}
}
