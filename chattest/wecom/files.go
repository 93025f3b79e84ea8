package wecom

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/md5" //nolint:gosec // the platform's checksum
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
)

const (
	// maxChunk is the limit of a piece of a file, in bytes before Base64, and maxChunks that of their number.
	maxChunk  = 512 << 10
	maxChunks = 100
	// maxImage and maxFile are the largest files that bots can send, in bytes.
	maxImage = 2 << 20
	maxFile  = 20 << 20
)

// upload is a file of the bot.
type upload struct {
	kind, name, sum string
	size            int
	chunks          [][]byte
	content         []byte
	media           string // its media id, once it is complete
}

// key is the key of the files of people.
var key = bytes.Repeat([]byte("0123456789abcdef"), 2)

// upload carries out a step of an upload.
func (s *Server) upload(f *frame) (any, *refusal) {
	var v struct {
		Type   string `json:"type"`
		Name   string `json:"filename"`
		Size   int    `json:"total_size"`
		Chunks int    `json:"total_chunks"`
		Sum    string `json:"md5"`
		ID     string `json:"upload_id"`
		Index  int    `json:"chunk_index"`
		Data   []byte `json:"base64_data"`
	}
	if err := json.Unmarshal(f.Body, &v); err != nil {
		return nil, refuse(codeParameter, "invalid body")
	}
	if f.Command == "aibot_upload_media_init" {
		limit := map[string]int{"image": maxImage, "file": maxFile}[v.Type]
		if v.Name == "" || v.Size < 5 || v.Size > limit || v.Chunks < 1 || v.Chunks > maxChunks {
			return nil, refuse(codeParameter, "invalid file")
		}
		id := s.id("upload")
		s.uploads[id] = &upload{kind: v.Type, name: v.Name, size: v.Size, sum: v.Sum, chunks: make([][]byte, v.Chunks)}
		return map[string]string{"upload_id": id}, nil
	}
	u := s.uploads[v.ID]
	switch {
	case u == nil:
		return nil, refuse(codeParameter, "invalid upload_id")
	case f.Command == "aibot_upload_media_chunk":
		if v.Index < 0 || v.Index >= len(u.chunks) || len(v.Data) > maxChunk || len(v.Data) == 0 {
			return nil, refuse(codeParameter, "invalid chunk")
		}
		u.chunks[v.Index] = v.Data
		return nil, nil
	}
	u.content = bytes.Join(u.chunks, nil)
	if sum := md5.Sum(u.content); len(u.content) != u.size || u.sum != "" && u.sum != hex.EncodeToString(sum[:]) { //nolint:gosec // see above
		return nil, refuse(codeParameter, "the file is incomplete")
	}
	u.media = s.id("media")
	s.uploads[u.media] = u
	return map[string]string{"type": u.kind, "media_id": u.media, "created_at": "1763922000"}, nil
}

// download answers with a file of a person, encrypted: AES-256-CBC with the first half of the key as the initialization vector,
// padded to 32 bytes.
func (s *Server) download(w http.ResponseWriter, name string) {
	s.mu.Lock()
	n, err := strconv.Atoi(name)
	if err != nil || n < 0 || n >= len(s.files) {
		s.mu.Unlock()
		http.NotFound(w, &http.Request{})
		return
	}
	f := s.files[n]
	s.mu.Unlock()
	padding := 32 - len(f.Content)%32
	plain := append(bytes.Clone(f.Content), bytes.Repeat([]byte{byte(padding)}, padding)...)
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // can't happen: the key has 32 bytes
	}
	cipher.NewCBCEncrypter(block, key[:aes.BlockSize]).CryptBlocks(plain, plain)
	w.Header().Set("Content-Disposition", `attachment; filename="`+f.Name+`"`)
	_, _ = w.Write(plain) // the client has gone
}

// keyText is the key as messages contain it.
func keyText() string { return base64.StdEncoding.EncodeToString(key) }
