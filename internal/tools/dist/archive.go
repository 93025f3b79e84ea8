package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// file is one entry of an archive. Its name is a relative path with slashes. Its mode has the permissions only, and
// zip ignores it.
type file struct {
	name string
	mode int64
	data []byte
}

// archive packs files under one folder: as a zip for Windows, else as a tar.gz. The same files give the same bytes:
// they are sorted, and all have the time of the commit in whole seconds, which is the precision of tar. It returns
// the extension of the format.
func archive(t target, folder string, at time.Time, files []file) (extension string, b []byte, err error) {
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	at = at.UTC().Truncate(time.Second)
	var buf bytes.Buffer
	if t.os == "windows" {
		err = writeZip(&buf, folder, at, files)
		return ".zip", buf.Bytes(), err
	}
	err = writeTar(&buf, folder, at, files)
	return ".tar.gz", buf.Bytes(), err
}

// writeTar writes a gzipped tar. USTAR has no optional headers, and the gzip header has no time, so the output only
// depends on its input and the version of Go.
func writeTar(dst io.Writer, folder string, at time.Time, files []file) error {
	z, err := gzip.NewWriterLevel(dst, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(z)
	for _, f := range files {
		h := &tar.Header{Name: folder + "/" + f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: at, Format: tar.FormatUSTAR, Typeflag: tar.TypeReg}
		if err := w.WriteHeader(h); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		if _, err := w.Write(f.data); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return z.Close()
}

// writeZip writes a zip. Its files have no mode, which Windows ignores.
func writeZip(dst io.Writer, folder string, at time.Time, files []file) error {
	w := zip.NewWriter(dst)
	for _, f := range files {
		h := &zip.FileHeader{Name: folder + "/" + f.name, Method: zip.Deflate, Modified: at}
		e, err := w.CreateHeader(h)
		if err == nil {
			_, err = e.Write(f.data)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return w.Close()
}
