package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// maxHistory is the number of messages that the history keeps. The file may have up to twice as many, so that it is
// written again only now and then.
const maxHistory = 1000

// history has the messages that the user has sent, oldest first, and the position in them.
type history struct {
	entries []string
	// at is the position of the entry that is shown. len(entries) stands for the text that is being written.
	at int
	// draft is the text that is being written, while an entry is shown.
	draft string
}

// newHistory returns a history with its position at the end.
func newHistory(entries []string) history { return history{entries: entries, at: len(entries)} }

// add appends a message and returns to the end. It reports false for a repetition of the last message, which isn't added.
func (h *history) add(text string) bool {
	isNew := len(h.entries) == 0 || h.entries[len(h.entries)-1] != text
	if isNew {
		h.entries = append(h.entries, text)
	}
	h.at, h.draft = len(h.entries), ""
	return isNew
}

// move returns the entry at a distance from the current one. current is the text of the input. It returns false at
// both ends. Changes of an entry that is shown are lost when another one is shown.
func (h *history) move(step int, current string) (string, bool) {
	at := h.at + step
	if at < 0 || at > len(h.entries) || step == 0 {
		return "", false
	}
	if h.at == len(h.entries) {
		h.draft = current
	}
	h.at = at
	if at == len(h.entries) {
		return h.draft, true
	}
	return h.entries[at], true
}

// HistoryPath returns the file of the history, in the folder for the state of programs: XDG_STATE_HOME or
// LOCALAPPDATA, if one is an absolute path, or else ~/.local/state. It is empty, which means no file, if home is
// needed and empty.
func HistoryPath(getenv func(string) string, home string) string {
	for _, name := range []string{"XDG_STATE_HOME", "LOCALAPPDATA"} {
		if dir := getenv(name); filepath.IsAbs(dir) {
			return filepath.Join(dir, "leat", "history")
		}
	}
	if home == "" {
		return ""
	}
	return filepath.Join(home, ".local", "state", "leat", "history")
}

// loadHistory reads the newest entries of a file. Each line is a JSON string, because messages can have several
// lines. A file that has become long is written again with its newest entries; if that fails, they are returned with
// the error. A missing file or an empty path isn't an error.
func loadHistory(path string) ([]string, error) {
	if path == "" {
		return nil, nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	var entries []string
	for l := range bytes.Lines(b) {
		var entry string
		if json.Unmarshal(l, &entry) == nil { // a line that was cut by a crash is skipped
			entries = append(entries, entry)
		}
	}
	if len(entries) <= 2*maxHistory {
		return entries, nil
	}
	entries = slices.Clone(entries[len(entries)-maxHistory:])
	return entries, rewriteHistory(path, entries)
}

// rewriteHistory replaces the file, so that a crash leaves the old one or the new one. Messages of another program
// that are appended meanwhile are lost.
func rewriteHistory(path string, entries []string) error {
	temporary := fmt.Sprintf("%s.%d", path, os.Getpid())
	for _, e := range entries {
		if err := appendHistory(temporary, e); err != nil {
			return errors.Join(err, os.Remove(temporary))
		}
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return nil
}

// appendHistory adds an entry to the file, and creates it if necessary. Only the user may read it, since messages may
// be private. If path is empty, it does nothing.
func appendHistory(path, entry string) error {
	if path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	b, err := json.Marshal(entry)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	_, err = f.Write(append(b, '\n')) // one write, so that two programs don't mix their lines
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return nil
}
