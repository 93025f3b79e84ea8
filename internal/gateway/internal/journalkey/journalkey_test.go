package journalkey

import "testing"

// Stores of earlier versions contain these keys, so each must stay byte for byte the same.
func TestKeysStayTheSame(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{Turn("t"), "turn/t"},
		{TurnPrincipal("t"), "turn/t/principal"},
		{TurnTools("t"), "turn/t/tools"},
		{TurnState("t"), "turn/t/state"},
		{TurnMapper("t"), "turn/t/keys"},
		{TurnWaited("t"), "turn/t/waited"},
		{TurnObserved("t"), "turn/t/observed"},
		{TurnPushed("t"), "turn/t/handed"},
		{TurnToken("t"), "turn/t/token"},
		{Answer("t", "q"), "turn/t/answer/q"},
		{Answer("t", ""), "turn/t/answer/"},
		{Session("c", "a"), "session/c/a"},
		{Session("c", ""), "session/c/"},
		{Cursor("c", "a"), "cursor/c/a"},
		{Entry("c", "a", "k"), "entry/c/a/8254c329a92850f6d539dd376f4816ee"},
		{Command("c", "send", "k"), "command/c/send/8254c329a92850f6d539dd376f4816ee"},
		{Create("t", "s", "k"), "create/cc3c5442f312cf6085b867bc1097f673/8254c329a92850f6d539dd376f4816ee"},
		{Deleting("c"), "deleting/c"},
		{Deleting(""), "deleting/"},
		{Import("c"), "import/c"},
		{File("c", "f"), "file/c/f"},
		{FileOrigin("c", "o"), "fileorigin/c/65c74c15a686187bb6bbf9958f494fc6b80068034a659a9ad44991b08c58f2d2"},
		{Read("t", "s", "c"), "read/cc3c5442f312cf6085b867bc1097f673/c"},
		{Heard("t", "s", "c"), "heard/cc3c5442f312cf6085b867bc1097f673/c"},
		{Share("t", "s", "c"), "shared/cc3c5442f312cf6085b867bc1097f673/c"},
		{Wrote("t", "s", "c"), "wrote/cc3c5442f312cf6085b867bc1097f673/c"},
		{HoldConversation("c"), "hold/conversation/c"},
		{HoldSubject("t", "s"), "hold/subject/cc3c5442f312cf6085b867bc1097f673"},
		{FilePrefix + HeardPrefix + HoldPrefix + ReadPrefix + SessionPrefix, "file/heard/hold/read/session/"},
	} {
		if tt.got != tt.want {
			t.Errorf("key %q, want %q", tt.got, tt.want)
		}
	}
}

func TestCutSession(t *testing.T) {
	for key, want := range map[string][2]string{
		"session/c/a":     {"c", "a"},
		"session/t/c/a":   {"t/c", "a"},
		"session/":        {},
		"cursor/c/a":      {},
		"session/alone":   {},
		Session("x", "y"): {"x", "y"},
	} {
		conversation, agent, ok := CutSession(key)
		if conversation != want[0] || agent != want[1] || ok != (want[0] != "") {
			t.Errorf("CutSession(%q) = %q, %q, %v", key, conversation, agent, ok)
		}
	}
}
