package socket

// AppendText is appendText for tests.
var AppendText = appendText
