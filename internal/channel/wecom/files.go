package wecom

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/md5" //nolint:gosec // the platform's checksum, not a protection
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/base/markup"
	"github.com/leat-dev/leat/internal/base/outbound"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/live"
)

const (
	// maxUpload is the largest file that bots can send, maxImage the largest image, and minUpload the smallest file, in bytes.
	maxUpload = 20 << 20
	maxImage  = 2 << 20
	minUpload = 5
	// maxChunk is the limit of a piece of a file, in bytes.
	maxChunk = 512 << 10
	// maxDownload is the largest file of a person, in bytes.
	maxDownload = 100 << 20
	// transferLimit limits the download of a file.
	transferLimit = 5 * time.Minute
)

// file is a file of a person. The address is valid for five minutes, and its content encrypted.
type file struct {
	URL string `json:"url"`
	Key string `json:"aeskey"`
}

// media returns the files of an item.
func (i *item) media() (list []channel.Media) {
	for _, f := range []*file{i.Image, i.File, i.Video} {
		if f == nil || f.URL == "" {
			continue
		}
		m := channel.Media{Ref: f.Key + " " + f.URL}
		switch f {
		case i.Image:
			m.Name, m.Type = "image.jpg", "image/jpeg"
		case i.Video:
			m.Name, m.Type = "video.mp4", "video/mp4"
		default:
			m.Name, m.Type = "file", "application/octet-stream"
			if u, err := url.Parse(f.URL); err == nil && path.Ext(u.Path) != "" {
				m.Name = path.Base(u.Path)
			}
		}
		list = append(list, m)
	}
	return list
}

// FetchMedia implements [channel.MediaChannel].
func (c *bot) FetchMedia(ctx context.Context, m channel.Media) (io.ReadCloser, error) {
	key, address, _ := strings.Cut(m.Ref, " ")
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, errors.New("wecom: the address of a file is invalid")
	}
	response, err := c.files.Do(r)
	if err != nil {
		return nil, fmt.Errorf("wecom: a file can't be fetched: %w", outbound.Reason(err))
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("wecom: a file can't be fetched: %s", response.Status)
	}
	content, err := io.ReadAll(response.Body)
	if errors.Is(err, outbound.ErrTooLarge) {
		return nil, channel.ErrTooLarge
	}
	if err == nil && key != "" {
		content, err = decrypt(key, content)
	}
	return io.NopCloser(bytes.NewReader(content)), err
}

// decrypt decrypts a file: AES-256-CBC with the first half of the key as the initialization vector, padded to 32 bytes.
func decrypt(keyText string, content []byte) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(keyText)
	if err != nil {
		key, err = base64.RawStdEncoding.DecodeString(keyText)
	}
	if err != nil || len(key) != 32 || len(content) == 0 || len(content)%aes.BlockSize != 0 {
		return nil, errors.New("wecom: a file has another encryption")
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	cipher.NewCBCDecrypter(block, key[:aes.BlockSize]).CryptBlocks(content, content)
	padding := int(content[len(content)-1])
	if padding < 1 || padding > 32 || padding > len(content) {
		return nil, errors.New("wecom: a file has another encryption")
	}
	return content[:len(content)-padding], nil
}

// upload is a file that was uploaded, so that a repeated message doesn't upload it again.
type upload struct {
	key, media string
}

// SendFile implements [live.FileChat]: it uploads a file and sends it, a picture as an image.
func (t *chat) SendFile(ctx context.Context, f live.File) (string, error) {
	if len(f.Content) < minUpload { // refused by the platform
		return t.sendName(ctx, f)
	}
	kind := "file"
	if slices.Contains([]string{"image/png", "image/jpeg", "image/gif"}, f.Type) && len(f.Content) <= maxImage {
		kind = "image"
	}
	if t.upload.key != f.Key || f.Key == "" {
		media, err := t.c.upload(ctx, kind, f)
		if err != nil {
			return "", t.repeatable(err)
		}
		t.upload = upload{f.Key, media}
	}
	body := map[string]any{"chatid": t.id, "msgtype": kind, kind: map[string]string{"media_id": t.upload.media}}
	return idSent, t.explain(t.c.link.request(ctx, commandSend, newID(commandSend), body, nil))
}

// sendName sends the name of a file.
func (t *chat) sendName(ctx context.Context, f live.File) (string, error) {
	m, _ := markup.Parse("📎 "+f.Name).Next(0, markup.WeCom, maxText)
	return t.Post(ctx, live.Post{Kind: live.Question, Text: m}) // not into the stream
}

// upload uploads a file in pieces and returns its media id. A second upload has no effect that people see.
func (c *bot) upload(ctx context.Context, kind string, f live.File) (string, error) {
	sum := md5.Sum(f.Content) //nolint:gosec // see above
	begin := map[string]any{
		"type": kind, "filename": f.Name, "total_size": len(f.Content), "total_chunks": (len(f.Content) + maxChunk - 1) / maxChunk,
		"md5": hex.EncodeToString(sum[:]),
	}
	var transfer struct {
		ID string `json:"upload_id"`
	}
	if err := c.link.request(ctx, commandInit, newID(commandInit), begin, &transfer); err != nil {
		return "", err
	}
	index := 0
	for chunk := range slices.Chunk(f.Content, maxChunk) {
		body := map[string]any{"upload_id": transfer.ID, "chunk_index": index, "base64_data": chunk}
		if err := c.link.request(ctx, commandChunk, newID(commandChunk), body, nil); err != nil {
			return "", err
		}
		index++
	}
	var result struct {
		ID string `json:"media_id"`
	}
	err := c.link.request(ctx, commandFinish, newID(commandFinish), map[string]string{"upload_id": transfer.ID}, &result)
	return result.ID, err
}
