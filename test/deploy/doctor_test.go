package deploy

import (
	"strings"
	"testing"

	"github.com/leat-dev/leat/internal/app/doctor"
	"github.com/leat-dev/leat/internal/server"
)

// The doctor finds nothing wrong with docs/deploy/nginx.conf, and finds out what is wrong with others.
func TestDoctorThroughNginx(t *testing.T) {
	const forwards = "proxy_pass http://leat;"
	for _, c := range []struct {
		name    string
		changes []string
		fails   []string // what the failures say; none: all is well
	}{
		{name: "as it is"},
		{name: "buffering", changes: []string{forwards, forwards + " proxy_ignore_headers X-Accel-Buffering;"}, fails: []string{"buffers"}},
		{name: "compressing", changes: []string{forwards, forwards + " gzip on; gzip_types text/event-stream; gzip_proxied any;"}, fails: []string{"compresses"}},
		{name: "no sockets", changes: []string{"proxy_set_header Upgrade           $http_upgrade;", ""}, fails: []string{"open a WebSocket"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			lookNginx(t)
			h := newHouse(t, "tcp", server.Options{PublicURL: publicURL(t, "https://chat.example.com")})
			p := startNginx(t, h.addr, c.changes...)
			client := p.client("127.0.0.2", false)
			const url = "https://chat.example.com"
			all := append(doctor.Stream(t.Context(), client, url, token), doctor.Socket(t.Context(), client, url, token)...)
			all = append(all, doctor.Clock(t.Context(), client, url)...)
			for _, f := range all {
				switch {
				case f.Level == doctor.Fail && (len(c.fails) == 0 || !strings.Contains(f.Message, c.fails[0])):
					t.Errorf("%+v", f)
				case f.Level == doctor.Fail:
					c.fails = nil
				case f.Level == doctor.Warn && !strings.Contains(f.Message, "certificate"): // the test's own lasts for a day
					t.Errorf("%+v", f)
				}
			}
			if len(c.fails) > 0 {
				t.Errorf("nothing says %q: %+v", c.fails[0], all)
			}
		})
	}
}
