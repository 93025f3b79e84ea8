package letta

import "testing"

// An App Server that was killed while it wrote may have lost a conversation. It opens it again, but has no list for it until somebody
// speaks in it.
func TestParseRowsOfALostConversation(t *testing.T) {
	rows, more, err := parseRows([]byte(`{"type":"conversation_messages_list_response","request_id":"1","success":false,"messages":[],"next_before":null,"has_more":false,"error":"Conversation default not found"}`))
	if err != nil || len(rows) != 0 || more {
		t.Errorf("%d rows, more %v, %v; want an empty history", len(rows), more, err)
	}
	if _, _, err := parseRows([]byte(`{"success":false,"messages":[],"error":"disk full"}`)); err == nil {
		t.Error("another refusal is no error")
	}
}
