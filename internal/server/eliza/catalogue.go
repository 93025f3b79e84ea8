package eliza

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"

	"github.com/leat-dev/leat/event"
)

const (
	// emotePath is the URL path of the emotes' files.
	emotePath = "/emotes/"
	// EmotesFile is the catalogue in a folder of emotes.
	EmotesFile = "emotes.json"
	// maxEmotes is the largest number of emotes. maxCatalogue is the largest size of the file in bytes.
	maxEmotes    = 1000
	maxCatalogue = 1 << 20
	// maxEmoteDuration is the longest animation in seconds.
	maxEmoteDuration = 3600
	// glbMagic is the start of every GLB file.
	glbMagic = "glTF"
)

// emoteFile matches the allowed file names, which need no escaping in a URL path.
var emoteFile = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*\.glb$`)

// emote is an animation of the avatar.
type emote struct {
	ID          string  `json:"id"`
	Name        string  `json:"name"`
	Description string  `json:"description"`
	Path        string  `json:"glbPath"`
	Duration    float64 `json:"duration"` // seconds
	Loop        bool    `json:"loop"`
	Category    string  `json:"category,omitempty"`
}

// Emotes is a catalogue of emotes. It is immutable.
type Emotes struct {
	dir   string
	list  []emote
	files map[string]bool
}

// find returns the emote with an id. A linear search is enough: the catalogue has at most maxEmotes
// entries, and each request needs one.
func (e *Emotes) find(id string) (emote, bool) {
	for _, emote := range e.list {
		if emote.ID == id {
			return emote, true
		}
	}
	return emote{}, false
}

// LoadEmotes reads the catalogue of a folder and checks that its files exist. The error lists every fault.
//
// All paths are opened below dir with os.Root, so a symbolic link or ".." in a file name can't
// reach a file outside the folder. Unknown keys are errors, because they are usually misspelled ones.
func LoadEmotes(dir string) (*Emotes, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open emotes: %w", err)
	}
	defer root.Close()
	f, err := root.Open(EmotesFile)
	if err != nil {
		return nil, fmt.Errorf("open emotes: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxCatalogue+1))
	if err != nil {
		return nil, fmt.Errorf("read emotes: %w", err)
	}
	if len(b) > maxCatalogue {
		return nil, fmt.Errorf("%s is larger than %d bytes", EmotesFile, maxCatalogue)
	}
	var entries []struct {
		emote
		// glbPath is declared here to shadow the embedded field: a catalogue that sets it gets an error
		// instead of a path that the gateway does not serve.
		Path any    `json:"glbPath"` // not read from the file
		File string `json:"file"`
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&entries); err != nil {
		return nil, fmt.Errorf("%s: %w", EmotesFile, err)
	}
	if len(entries) > maxEmotes {
		return nil, fmt.Errorf("%s lists more than %d emotes", EmotesFile, maxEmotes)
	}
	e := &Emotes{dir: dir, files: map[string]bool{}}
	var errs []error
	for i, entry := range entries {
		if _, exists := e.find(entry.ID); exists {
			errs = append(errs, fmt.Errorf("%s: emote %d: duplicate id %q", EmotesFile, i+1, entry.ID))
		}
		if err := checkEmote(root, entry.emote, entry.File); err != nil {
			errs = append(errs, fmt.Errorf("%s: emote %d (%s): %w", EmotesFile, i+1, entry.ID, err))
		}
		if entry.Path != nil {
			errs = append(errs, fmt.Errorf("%s: emote %d (%s): glbPath is not allowed; it follows from file", EmotesFile, i+1, entry.ID))
		}
		entry.emote.Path = emotePath + entry.File
		entry.Name = cmp.Or(entry.Name, entry.ID)
		e.list = append(e.list, entry.emote)
		e.files[entry.File] = true
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return e, nil
}

// checkEmote returns the first fault of an entry. It reads the first bytes of the file, because a wrong
// file would fail only in the browser, where the operator doesn't see the error. The negated comparison of
// the duration also refuses NaN.
func checkEmote(root *os.Root, e emote, file string) error {
	if e.ID == "" {
		return errors.New("missing id")
	}
	if err := event.CheckID("id", e.ID); err != nil {
		return err
	}
	if !(e.Duration > 0 && e.Duration <= maxEmoteDuration) {
		return fmt.Errorf("invalid duration %v: use seconds, more than 0 and at most %d", e.Duration, maxEmoteDuration)
	}
	if !emoteFile.MatchString(file) {
		return fmt.Errorf("invalid file %q: use the name of a GLB file in the folder, such as wave.glb, with letters, digits, dots, - and _ only", file)
	}
	f, err := root.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, len(glbMagic))
	if _, err := io.ReadFull(f, head); err != nil || string(head) != glbMagic {
		return fmt.Errorf("%s is not a GLB file", file)
	}
	return nil
}
