package eliza

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"

	"github.com/leat-dev/leat/event"
)

const (
	// emotePath is where the files of emotes are.
	emotePath = "/emotes/"
	// EmotesFile is the file of a folder that lists its emotes.
	EmotesFile = "emotes.json"
	// maxEmotes bounds a catalogue, and maxCatalogue its file in bytes.
	maxEmotes    = 1000
	maxCatalogue = 1 << 20
	// maxEmoteDuration is how long an animation may take, in seconds.
	maxEmoteDuration = 3600
	// glbMagic begins each GLB file.
	glbMagic = "glTF"
)

// emoteFile is what files of emotes are called: what needs no escape in a path.
var emoteFile = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*\.glb$`)

// Emote is an animation of an avatar.
type Emote struct {
	ID          string  `json:"id"`
	Name        string  `json:"name"`
	Description string  `json:"description"`
	Path        string  `json:"glbPath"`
	Duration    float64 `json:"duration"` // seconds
	Loop        bool    `json:"loop"`
	Category    string  `json:"category,omitempty"`
}

// Emotes is a catalogue. It does not change.
type Emotes struct {
	dir   string
	all   []Emote
	files map[string]bool
}

func (e *Emotes) find(id string) (Emote, bool) {
	for _, one := range e.all {
		if one.ID == id {
			return one, true
		}
	}
	return Emote{}, false
}

// LoadEmotes reads the catalogue of a folder, and looks whether its files are there. The error names all that is wrong.
func LoadEmotes(dir string) (*Emotes, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the emotes: %w", err)
	}
	defer root.Close()
	f, err := root.Open(EmotesFile)
	if err != nil {
		return nil, fmt.Errorf("open the emotes: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxCatalogue+1))
	if err != nil {
		return nil, fmt.Errorf("read the emotes: %w", err)
	}
	if len(b) > maxCatalogue {
		return nil, fmt.Errorf("%s is larger than %d bytes", EmotesFile, maxCatalogue)
	}
	var list []struct {
		Emote
		Path any    `json:"glbPath"` // not of the file
		File string `json:"file"`
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&list); err != nil {
		return nil, fmt.Errorf("%s: %w", EmotesFile, err)
	}
	if len(list) > maxEmotes {
		return nil, fmt.Errorf("%s lists more than %d emotes", EmotesFile, maxEmotes)
	}
	e := &Emotes{dir: dir, files: map[string]bool{}}
	var errs []error
	for i, one := range list {
		if _, taken := e.find(one.ID); taken {
			errs = append(errs, fmt.Errorf("%s: emote %d: two have the id %q", EmotesFile, i+1, one.ID))
		}
		if err := checkEmote(root, one.Emote, one.File); err != nil {
			errs = append(errs, fmt.Errorf("%s: emote %d (%s): %w", EmotesFile, i+1, one.ID, err))
		}
		if one.Path != nil {
			errs = append(errs, fmt.Errorf("%s: emote %d (%s): glbPath is made from file", EmotesFile, i+1, one.ID))
		}
		one.Emote.Path = emotePath + one.File
		if one.Name == "" {
			one.Name = one.ID
		}
		e.all = append(e.all, one.Emote)
		e.files[one.File] = true
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return e, nil
}

func checkEmote(root *os.Root, e Emote, file string) error {
	if e.ID == "" {
		return errors.New("it has no id")
	}
	if err := event.CheckID("id", e.ID); err != nil {
		return err
	}
	if !(e.Duration > 0 && e.Duration <= maxEmoteDuration) {
		return fmt.Errorf("duration %v: it is in seconds, above 0 and at most %d", e.Duration, maxEmoteDuration)
	}
	if !emoteFile.MatchString(file) {
		return fmt.Errorf("file %q: it is the name of a GLB file of the folder, such as wave.glb, of letters, digits, dots, - and _", file)
	}
	f, err := root.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, len(glbMagic))
	if _, err := io.ReadFull(f, head); err != nil || string(head) != glbMagic {
		return fmt.Errorf("%s is no GLB file", file)
	}
	return nil
}
