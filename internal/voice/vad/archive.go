package vad

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// version is the version of the messages between the page and the detector. web/vad/build.mjs has the same.
const version = 1

// maxSize limits the content of an archive in bytes. The real one has 17 MB. A wrong file could be a disk image.
const maxSize = 64 << 20

// The files of an archive.
const (
	manifestFile = "manifest.json"
	scriptFile   = "detector.js"
	runtimeFile  = "runtime.wasm"
	modelFile    = "model.onnx"
)

var required = []string{manifestFile, scriptFile, runtimeFile, modelFile}

// Archive is a speech detector. Its parts must not be changed.
type Archive struct {
	// Script runs the model. It can be the text of a script element.
	Script []byte
	// Runtime is the WebAssembly that the script needs, and Model the weights. Both are compressed with gzip, 6 MB
	// instead of 17.
	Runtime, Model []byte
}

// Open reads the archive at a path: a .tar.gz, or the folder that is in it. An archive that is incomplete or of another version is an error.
func Open(name string) (*Archive, error) {
	files, err := readFiles(name)
	if err != nil {
		return nil, err
	}
	for _, f := range required {
		if len(files[f]) == 0 {
			return nil, fmt.Errorf("%w: %s has no %s; download it again", errIncomplete, name, f)
		}
	}
	var manifest struct{ Version int }
	if err := json.Unmarshal(files[manifestFile], &manifest); err != nil {
		return nil, fmt.Errorf("%w: %s: %s: %w", errIncomplete, name, manifestFile, err)
	}
	if manifest.Version != version {
		return nil, fmt.Errorf("%w: %s has version %d, and this gateway needs version %d; download the archive of the gateway's release", errVersion, name, manifest.Version, version)
	}
	if bytes.Contains(bytes.ToLower(files[scriptFile]), []byte("</script")) {
		return nil, fmt.Errorf("%w: %s: %s would end its script element", errIncomplete, name, scriptFile)
	}
	return &Archive{Script: files[scriptFile], Runtime: compress(files[runtimeFile]), Model: compress(files[modelFile])}, nil
}

// readFiles returns the required files that are at a path, by their names.
func readFiles(name string) (map[string][]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	if info, err := f.Stat(); err != nil || info.IsDir() {
		return readFolder(name)
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%w: %s is not a .tar.gz: %w", errIncomplete, name, err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(io.LimitReader(z, maxSize)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err == nil && h.Typeflag == tar.TypeReg && slices.Contains(required, path.Base(h.Name)) {
			files[path.Base(h.Name)], err = io.ReadAll(r)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w; download it again", errIncomplete, name, err)
		}
	}
}

// readFolder returns the required files that are in a folder.
func readFolder(name string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, f := range required {
		b, err := os.ReadFile(filepath.Join(name, f))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		files[f] = b
	}
	return files, nil
}

// compress compresses with gzip. The fastest level makes the files 14 % larger than the usual one, in half of its time: 0.3 s at each start.
func compress(b []byte) []byte {
	var buf bytes.Buffer
	z, _ := gzip.NewWriterLevel(&buf, gzip.BestSpeed) // the level is valid
	_, _ = z.Write(b)                                 // a buffer has no errors
	_ = z.Close()
	return buf.Bytes()
}
