package files_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/attachments"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/files"
	store "github.com/leat-dev/leat/internal/store/files"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// While a large file is moved to its place, requests for the upload get a status that means retry: with a 5xx, tus clients give
// up.
func TestUploadThatIsPlaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		coming, err := store.OpenUploads(filepath.Join(dir, "uploads"))
		if err != nil {
			t.Fatal(err)
		}
		kept, err := store.Open(filepath.Join(dir, "files"))
		if err != nil {
			t.Fatal(err)
		}
		j := memory.New()
		attached := attachments.NewStore(attachments.Config{Journal: j, Files: kept, Uploads: coming})
		gw, err := gateway.New(gateway.Config{Dialects: dialect.NewRegistry(), Journal: j, Attachments: attached, Agents: gateway.Agents{"a": {Agent: quiet{}}}, DefaultAgent: "a"})
		if err != nil {
			t.Fatal(err)
		}
		if err := gw.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		srv := server.New(server.Options{Token: apiToken})
		files.Register(srv, attachments.NewService(attached, gw))
		u, err := coming.Create(store.Upload{Owner: store.Operator, Name: "x", Length: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := coming.Append(t.Context(), u.ID, 0, strings.NewReader("x"), nil); err != nil {
			t.Fatal(err)
		}
		done, placed := make(chan struct{}), make(chan error, 1)
		go func() {
			_, err := coming.Finish(t.Context(), u.ID, func(store.Upload, *os.File) (json.RawMessage, error) {
				<-done
				return json.RawMessage(`{"media":{"url":"/x"}}`), nil
			})
			placed <- err
		}()
		synctest.Wait()
		ask := func(method string) int {
			r := httptest.NewRequestWithContext(t.Context(), method, "/api/files/upload/"+u.ID, strings.NewReader(""))
			for k, v := range map[string]string{"Authorization": "Bearer " + apiToken, "Tus-Resumable": "1.0.0", "Upload-Offset": "1", "Content-Type": "application/offset+octet-stream"} {
				r.Header.Set(k, v)
			}
			r.Host = "localhost"
			w := httptest.NewRecorder()
			srv.ServeHTTP(w, r)
			return w.Code
		}
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPatch, http.MethodDelete} {
			if got := ask(method); got != http.StatusLocked {
				t.Errorf("%s: %d", method, got)
			}
		}
		close(done)
		if err := <-placed; err != nil {
			t.Fatal(err)
		}
		if got := ask(http.MethodHead); got != http.StatusOK {
			t.Errorf("once it is there: %d", got)
		}
		srv.Close()
		if err := gw.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
