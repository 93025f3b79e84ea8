// Command compress replaces the files of the built dashboard by their compressed forms, which the gateway embeds and serves as they are:
// NAME.br for nearly all browsers, and NAME.gz for those that accept Brotli only over TLS. The same files have the same result.
//
//	go run ./internal/tools/compress FOLDER
package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/andybalholm/brotli"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: compress FOLDER")
		os.Exit(2)
	}
	if err := filepath.WalkDir(os.Args[1], compress); err != nil {
		fmt.Fprintln(os.Stderr, "compress:", err)
		os.Exit(1)
	}
}

// compress replaces a file.
func compress(name string, d fs.DirEntry, err error) error {
	if err != nil || d.IsDir() {
		return err
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	for suffix, encoder := range map[string]func(io.Writer) io.WriteCloser{".br": newBrotli, ".gz": newGzip} {
		var b bytes.Buffer
		w := encoder(&b)
		_, err := w.Write(content)
		if err := errors.Join(err, w.Close()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(name+suffix, b.Bytes(), 0o644); err != nil { //nolint:gosec // everyone may read the dashboard
			return err
		}
	}
	return os.Remove(name)
}

func newBrotli(w io.Writer) io.WriteCloser { return brotli.NewWriterLevel(w, brotli.BestCompression) }

func newGzip(w io.Writer) io.WriteCloser {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		panic(err) // only for an unknown level
	}
	return z
}
