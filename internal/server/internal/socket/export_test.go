package socket

// AppendText appends a text message to a buffer, as the frame that TryWrite takes.
func AppendText(b, text []byte) []byte { return appendFrame(b, opText, text) }
